#!/bin/sh
# Says the time every two seconds. `wait` lets the trap run at once; a plain sleep would not.
trap 'exec 2>/dev/null; kill $!; echo "the clock stops"; exit 0' TERM
while true; do
    date '+it is %H:%M:%S'
    sleep 2 &
    wait $!
done
