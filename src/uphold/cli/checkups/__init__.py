"""What `uphold doctor` looks at, part by part. Nothing here starts or changes anything."""
