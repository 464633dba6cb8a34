"""Hostile configurations of 100 kB, in TOML and YAML, and how much CPU each costs to read.

The tests read all of them. Run as a program (`PYTHONPATH=tests python tests/config/hostile.py`)
this prints the milliseconds of CPU each one costs, dearest first: S45 wants at most 50.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

SIZE = 100_000
"""How large each file is made."""


def filled(line, *, before="", after="", size=SIZE):
    """Repeat a line with a number in it until the file is large enough."""
    pieces, length, number = [before], len(before) + len(after), 0
    while length < size:
        pieces.append(line.format(n=number, m=number + 1))
        length += len(pieces[-1].encode())
        number += 1
    return "".join((*pieces, after))


def shuffled_letters(word, number):
    """Give a word that is nearly the given one."""
    rng = random.Random(number)
    at = rng.randrange(len(word))
    return word[:at] + rng.choice("abcdefxyz") + word[at + 1 :] + str(number)


def near_names(line):
    words = ("command", "restart", "depends_on")
    lines = (line.format(n=n, key=shuffled_letters(words[n % 3], n)) for n in range(SIZE // 15))
    return "".join(lines)[:SIZE].rpartition("\n")[0]


WORKER = "[workers.w{n}]\ncommand='x'\n"
YAML_WORKER = "  w{n}: {{command: x}}\n"
ONE = "[workers.a]\ncommand = 'x'\n"
YAML_ONE = "workers:\n  a:\n    command: x\n"
MANY = 1000

TOML = {
    "workers": filled(WORKER),
    "workers with much": filled(
        WORKER + "stop.grace='5s'\nlogs.keep=1\nenvironment={{L='info'}}\nreplicas=2\n"
    ),
    "dotted workers": filled("w{n}.command='x'\n", before="[workers]\n"),
    "inline workers": filled("w{n}={{command='x'}}\n", before="[workers]\n"),
    "unknown keys of workers": filled("[workers.w{n}]\nx{n}=1\n"),
    "unknown keys of workers, unlike": filled("[workers.w{n}]\nq=1\n"),
    "near keys of workers": near_names("[workers.w{n}]\n{key}=1\n"),
    "near keys of one": ONE + near_names("{key} = {n}\n"),
    "long unknown keys": filled("[workers.w{n}]\ncommand='x'\n" + "k" * 500 + "=1\n"),
    "unknown sections": filled("[worker{n}]\n"),
    "bad names": filled("[workers.'a b{n}']\ncommand='x'\n"),
    "long names": filled("[workers." + "n" * 1000 + "{n}]\ncommand='x'\n"),
    "case twins": filled("[workers.A{n}]\ncommand='x'\n[workers.a{n}]\ncommand='x'\n"),
    "wrong values": filled("[workers.w{n}]\ncommand=3\n"),
    "many wrong values": filled(WORKER + "replicas='x'\nstop.grace=-1\numask=8\nrestart='y'\n"),
    "labels": filled("k{n}='v'\n", before=ONE + "[workers.a.labels]\n"),
    "wrong labels": filled("k{n}=1.5\n", before=ONE + "[workers.a.labels]\n"),
    "environment": filled("TOKEN{n}='abcdef{n}'\n", before=ONE + "[workers.a.environment]\n"),
    "dotted keys": filled("labels." + "a." * 8 + "b{n}=1\n", before=ONE),
    "dotted headers": filled("[workers.a.b{n}.c.d.e.f.g.h]\n"),
    "parts below the limit": filled("a{n}." + "b." * 30 + "c=1\n"),
    "one key of many parts": "a." * 50_000 + "a = 1",
    "one header of many parts": "[" + "a." * 50_000 + "a]",
    "inline key of many parts": ONE + "labels = { " + "a." * 49_000 + "a = 1 }\n",
    "quoted parts": "'a'." * 25_000 + "a = 1",
    "open quoted parts": ("'a" * 40 + ".") * 1200,
    "spaces before keys": (" " * 99 + "\n") * 1000,
    "spaces in a line": ONE + " " * SIZE + "x",
    "tabs and dots": "a \t." * 24 + "\t" * SIZE,
    "commas": "a = [" + ",   a.b.c.d.e.f" * 6000 + "]",
    "commas and spaces": "a = '" + ("," + " " * 200) * 500 + "'",
    "words after commas": "a = '" + ("," + "a" * 300) * 333 + "'",
    "deep lists": "a = " + "[" * SIZE,
    "lists at the limit": ONE + "command = [" + ("[" * 30 + "]" * 30 + ",") * 1600 + "]\n",
    "closed deep lists": ONE + "labels = " + "[" * 300 + "]" * 300 + "\n" + "#" * 99_000,
    "deep tables": "a = " + "{a=" * 33_000,
    "a list of lists": ONE + "command = [" + "[]," * 33_000 + "]\n",
    "a list of tables": ONE + "command = [" + "{}," * 33_000 + "]\n",
    "a list of words": ONE.replace("'x'", "[" + "'a'," * 24_000 + "]"),
    "a list of numbers": ONE + "success_exit_codes = [" + "1," * 49_000 + "]\n",
    "a list of wrong numbers": ONE + "success_exit_codes = [" + "999," * 24_000 + "]\n",
    "lists of tables": filled("[[workers]]\n"),
    "lists of tables below": filled("[[a.b.c{n}]]\n"),
    "one list of tables": filled("[[a]]\nb=1\n"),
    "an inline table": ONE + filled("k{n}=1,", before="labels = {{", after="z=1}}\n").replace("{{", "{").replace("}}", "}"),
    "keys given twice": filled("a = 1\n"),
    "tables given twice": filled("[a]\n"),
    "twice at the end": filled("k{n} = 1\n", after="k0 = 2\n"),
    "a long string": ONE.replace("'x'", "'" + "x" * SIZE + "'"),
    "a long name": "[workers." + "a" * SIZE + "]\n",
    "a long key": "a" * SIZE + " = 1\n",
    "a long quoted key": '"' + "a" * SIZE + '" = 1\n',
    "escapes": ONE + 'team = "' + "\\u0041" * 16_000 + '"\n',
    "quotes": "a = " + '"' * SIZE,
    "open string": ONE + 'team = "' + "x" * SIZE,
    "open multiline string": ONE + 'team = """' + '""\n' * 33_000,
    "multiline string": ONE + 'team = """' + '""\n' * 32_000 + '"""\n',
    "backslashes": ONE + 'team = "' + "\\\\" * 50_000 + '"\n',
    "a huge number": ONE + "replicas = " + "9" * SIZE + "\n",
    "a huge hexadecimal number": ONE + "replicas = 0x" + "f" * SIZE + "\n",
    "a huge exponent": ONE + "replicas = 1e" + "9" * SIZE + "\n",
    "a huge fraction": ONE + "backoff.jitter = 0." + "9" * SIZE + "\n",
    "underscores": ONE + "replicas = " + "1_" * 50_000 + "\n",
    "large numbers": filled("k{n} = " + "9" * 4000 + "\n"),
    "large hexadecimal numbers": filled("k{n} = 0x" + "f" * 4000 + "\n", before=ONE + "[workers.a.labels]\n"),
    "dates": filled("k{n} = 1979-05-27T07:32:00Z\n", before=ONE + "[workers.a.labels]\n"),
    "a long duration": ONE + "stop.grace = '" + "1h" * 50_000 + "'\n",
    "a long size": ONE + "logs.max_size = '" + "1" * SIZE + "'\n",
    "set variables": ONE.replace("'x'", "'" + "${A}" * 25_000 + "'"),
    "set variables in words": ONE.replace("'x'", "'" + "${A} " * 20_000 + "'"),
    "variables that are not set": ONE.replace("'x'", "'" + "${B} " * 20_000 + "'"),
    "variables that differ": ONE.replace("'x'", "'" + filled("${{B{n}}} ") + "'"),
    "many with variables": filled("[workers.w{n}]\ncommand='${{A}} x'\n"),
    "many with unset variables": filled("[workers.w{n}]\ncommand='${{B}} x'\n"),
    "variables in labels": filled("k{n}='${{A}}'\n", before=ONE + "[workers.a.labels]\n"),
    "open variables": "a = '" + "${a:" * 25_000 + "'",
    "braces": ONE.replace("'x'", "'" + "${" * 50_000 + "'"),
    "dollars": ONE.replace("'x'", "'" + "$" * SIZE + "'"),
    "defaults of variables": ONE.replace("'x'", "'" + "${B:" + "x" * SIZE + "}'"),
    "a command of quotes": '[workers.a]\ncommand = "' + "'a' " * 25_000 + '"\n',
    "a command of open quotes": '[workers.a]\ncommand = "' + "'a' " * 25_000 + "'" + '"\n',
    "a command of options": ONE.replace("'x'", "'x " + "--token abcdefgh " * 5800 + "'"),
    "a command of addresses": ONE.replace("'x'", "'x " + "a://b:c@d:" * 9900 + "'"),
    "a command of colons": ONE.replace("'x'", "'x " + "://" * 33_000 + "'"),
    "a circle": filled(WORKER + "depends_on=['w{m}']\n", size=SIZE - 30) + "[workers.last]\ncommand='x'\n",
    "a circle of a thousand": "".join(
        f"[workers.w{n}]\ncommand='x'\ndepends_on=['w{(n + 1) % MANY}']\n" for n in range(MANY)
    ),
    "circles of two": "".join(
        f"[workers.w{n}]\ncommand='x'\ndepends_on=['w{n ^ 1}']\n" for n in range(2200)
    ),
    "circles of themselves": filled(WORKER + "depends_on=['w{n}']\n"),
    "links to nobody": filled(WORKER + "depends_on=['v{n}']\n"),
    "all on all": "".join(
        f"[workers.w{n}]\ncommand='x'\ndepends_on=[{','.join(f'{chr(39)}w{m}{chr(39)}' for m in range(120))}]\n"
        for n in range(120)
    ),
    "a default link": "[defaults]\ndepends_on=['w0']\n" + filled(WORKER),
    "many default links": "[defaults]\ndepends_on=["
    + ",".join(f"'w{n}'" for n in range(4000)) + "]\n" + filled(WORKER, size=SIZE // 2),
    "many default labels": "[defaults]\nlabels={"
    + ",".join(f"k{n}=1" for n in range(5000)) + "}\n"
    + filled("[workers.w{n}]\ncommand='x'\nlabels.a='b'\n", size=SIZE // 2),
    "many default variables": "[defaults]\nenvironment={"
    + ",".join(f"k{n}=1" for n in range(5000)) + "}\n" + filled(WORKER, size=SIZE // 2),
    "a long default command": "[defaults]\ncommand='" + "x " * 25_000 + "'\n"
    + filled("[workers.w{n}]\n", size=SIZE // 2),
    "a long default command of quotes": '[defaults]\ncommand="' + "'x' " * 12_000 + '"\n'
    + filled("[workers.w{n}]\n", size=SIZE // 2),
    "a long default list": "[defaults]\ncommand=[" + "'x'," * 12_000 + "]\n"
    + filled("[workers.w{n}]\n", size=SIZE // 2),
    "a long default stop": '[defaults]\ncommand="x"\nstop.command="' + "'x' " * 12_000 + '"\n'
    + filled("[workers.w{n}]\nstop.grace={n}\n", size=SIZE // 2),
    "default codes": "[defaults]\nsuccess_exit_codes=[" + "1," * 25_000 + "]\n"
    + filled(WORKER, size=SIZE // 2),
    "a wrong default": "[defaults]\ncommand='\"'\n" + filled("[workers.w{n}]\n"),
    "thousands of replicas": filled(WORKER + "replicas=1000\n"),
    "env files": filled(WORKER + "env_file='e{n}'\n"),
    "one env file": filled(WORKER + "env_file='.env'\n"),
    "comments": filled("# {n}\n"),
    "comments and a worker": filled("# {n}\n", after=ONE),
    "blank lines": "\n" * SIZE,
    "carriage returns": filled("[workers.w{n}]\r\ncommand='x'\r\n"),
    "carriage returns alone": "a = 1\r" * 16_000,
    "NUL characters": "\0" * SIZE,
    "escaped NUL characters": ONE.replace("'x'", '"' + "\\u0000" * 16_000 + '"'),
    "other letters": filled("# ⚙ straße 日本語 {n}\n", after=ONE),
    "other letters as keys": filled("'日本語{n}'=1\n"),
    "other letters as names": filled("[workers.'ß{n}']\ncommand='x'\n"),
    "combining letters": ONE.replace("'x'", "'" + "a\u0301" * 33_000 + "'"),
    "halves of characters": ONE.replace("'x'", '"' + "\\ud800" * 16_000 + '"'),
    "one line": ONE.replace("'x'", "['x', " + "'y', " * 19_000 + "]"),
    "nothing but letters": "x" * SIZE,
    "nothing but equals": "=" * SIZE,
    "nothing but brackets": "]" * SIZE,
}  # fmt: skip

YAML = {
    "workers": filled(YAML_WORKER, before="workers:\n"),
    "workers in blocks": filled("  w{n}:\n    command: x\n", before="workers:\n"),
    "unknown keys of workers": filled("  w{n}: {{x{n}: 1}}\n", before="workers:\n"),
    "near keys of workers": near_names("  w{n}: {{ {key}: 1 }}\n").replace("  w0", "workers:\n  w0"),
    "unknown sections": filled("a{n}: 1\n"),
    "wrong values": filled("  w{n}: 3\n", before="workers:\n"),
    "keys given twice": filled("a: {n}\n"),
    "keys given twice in workers": filled("  a: {{command: x}}\n", before="workers:\n"),
    "tags": filled("k{n}: !x 1\n"),
    "one long tag": "a: !" + "x" * SIZE + " 1\n",
    "tag directives": filled("%TAG !a{n}! tag:x,2000:\n", after="--- 1\n"),
    "brackets": "[" * SIZE,
    "braces": "{" * SIZE,
    "dashes": "- " * 50_000,
    "dashes in lines": "".join(" " * n + "-\n" for n in range(440)),
    "questions": "? " * 50_000,
    "question lines": "? a\n" * 25_000,
    "colons": ": " * 50_000,
    "anchors": filled("a{n}: &a{n} 1\n"),
    "aliases": filled("  w{n}: *a\n", before="x: &a {command: x}\nworkers:\n"),
    "aliases in workers": filled("  w{n}: *a\n", before="workers:\n  a: &a {command: x}\n"),
    "aliases of a large list": filled("k{n}: *a\n", before="x: &a [" + "1," * 20 + "1]\n", size=40_000),
    "aliases of a large label table": filled(
        "  w{n}: {{command: x, labels: *a}}\n",
        before="x: &a {" + ",".join(f"k{n}: v" for n in range(40)) + "}\nworkers:\n",
    ),
    "aliases of a wrong table": filled(
        "  w{n}: {{command: x, labels: *a}}\n",
        before="workers:\n  a: {labels: &a {" + ",".join(f"k{n}: 1.5" for n in range(40)) + "}}\n",
    ),
    "alias bomb": "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "alias bomb below the limit": "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 4))
    + "workers: {a: {command: *a3}}\n",
    "many aliases below the limit": "x: &a [" + "x," * 300 + "x]\nworkers:\n"
    + "".join(f"  w{n}: {{command: *a}}\n" for n in range(300)),
    "a bomb of merges": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 30)}]}}\n" for n in range(1, 9)),
    "merges of a large table": filled(
        "k{n}: {{<<: *a}}\n",
        before="x: &a {" + ",".join(f"k{n}: 1" for n in range(2000)) + "}\n", size=SIZE,
    ),
    "merges into one": "x: &a {" + ",".join(f"k{n}: 1" for n in range(90)) + "}\ny: {"
    + "<<: *a, " * 10_000 + "}\n",
    "a merge of a list": "x: &a {a: 1}\ny: {<<: [" + "*a, " * 24_000 + "]}\n",
    "merges of nothing": "y: {" + "<<: 1, " * 14_000 + "}\n",
    "an anchor in itself": "a: &a [" + "*a," * 30_000 + "]\n",
    "long strings": YAML_ONE.replace("x\n", "x" * SIZE + "\n"),
    "folded strings": YAML_ONE + "    team: >\n" + "      a b c\n" * 8000,
    "plain strings of many lines": YAML_ONE + "    team: a\n" + "      b\n" * 14_000,
    "double quotes": YAML_ONE + '    team: "' + "\\u0041" * 16_000 + '"\n',
    "open quotes": YAML_ONE + '    team: "' + "x" * SIZE,
    "single quotes": YAML_ONE + "    team: '" + "''" * 49_000 + "'\n",
    "huge numbers": YAML_ONE + "    replicas: " + "9" * SIZE + "\n",
    "many numbers": YAML_ONE + "    success_exit_codes: [" + "1," * 49_000 + "1]\n",
    "wrong numbers": YAML_ONE + "    success_exit_codes: [" + "a," * 49_000 + "1]\n",
    "near floats": filled("k{n}: " + "1" * 60 + "e\n"),
    "words": YAML_ONE.replace("x\n", "[" + "a," * 49_000 + "a]\n"),
    "spaces": "a:" + " " * SIZE + "1\n",
    "a long key": "a" * SIZE + ": 1\n",
    "long keys": filled("k" * 900 + "{n}: 1\n"),
    "keys that are lists": "? [" + "a," * 49_000 + "]\n: 1\n",
    "documents": "---\n" * 25_000,
    "comments": filled("# {n}\n"),
    "comments and a worker": filled("# {n}\n", after=YAML_ONE),
    "blank lines": "\n" * SIZE,
    "carriage returns": filled("  w{n}:\r\n    command: x\r\n", before="workers:\r\n"),
    "NUL characters": "\0" * SIZE,
    "a NUL character at the end": filled("# ä {n}\n", after="\0"),
    "tabs": "a:\n" + "\t" * SIZE,
    "other letters": filled("日本語{n}: 1\n"),
    "variables": YAML_ONE.replace("x\n", '"' + "${B} " * 20_000 + '"\n'),
    "many with variables": filled("  w{n}: {{command: '${{A}} x'}}\n", before="workers:\n"),
    "a circle": filled("  w{n}: {{command: x, depends_on: [w{m}]}}\n", before="workers:\n"),
    "circles of two": "workers:\n" + "".join(
        f"  w{n}: {{command: x, depends_on: [w{n ^ 1}]}}\n" for n in range(2400)
    ),
    "environment": YAML_ONE + "    environment:\n" + filled("      TOKEN{n}: abcdef{n}\n"),
}  # fmt: skip

ENV = {
    "names": filled("K{n}=v\n"),
    "secrets": filled("TOKEN{n}=abcdefgh{n}\n"),
    "mistakes": filled("x{n}\n"),
    "open quotes": filled("K{n}='x\n"),
    "one line": "K=" + "x" * SIZE,
    "escapes": 'K="' + "\\n" * 50_000 + '"',
    "backslashes": 'K="' + "\\\\" * 50_000,
    "comments": "K=" + " #" * 50_000,
    "spaces": "K" + " " * SIZE + "x",
    "spaces at the end": 'K="x"' + " " * SIZE + "x",
    "spaces inside": "K=a" + " \t" * 50_000 + "b",
    "an address": "K=" + "a://b:c@" * 12_500,
    "words": "K=" + "ab1 " * 25_000 + "!",
    "a telling name": "K" * SIZE + "=v",
    "underscores": "_key" * 25_000 + "x=abcdefgh",
    "digits": "K=" + "1" * SIZE + "!",
    "letters": "K=" + "a" * SIZE + "!",
    "dashes": "K=" + "-" * SIZE + "!",
    "numbers": "K=" + "1." * 50_000 + "!!!!",
}

FILES = {
    **{f"toml: {name}": (text, "toml", None) for name, text in TOML.items()},
    **{f"yaml: {name}": (text, "yaml", None) for name, text in YAML.items()},
    **{f"env: {name}": (ONE.replace("'x'", "'${K:x}'") + "env_file='.env'\n", "toml", text) for name, text in ENV.items()},
    "env: one file for many": (TOML["one env file"], "toml", ENV["secrets"]),
}  # fmt: skip
"""By name: the text, the ending of its file's name, and the .env beside it."""


def written(folder, name):
    """Write one of the files, with its .env, and tell its path."""
    text, ending, env = FILES[name]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"uphold.{ending}"
    path.write_bytes(text.encode())
    if env is not None:
        (folder / ".env").write_bytes(env.encode())
    return path


def measure():
    """Print what each file costs: the least of some readings, as others use the machine too."""
    from uphold.config.loading import examine

    costs = []
    chosen = [name for name in FILES if not sys.argv[1:] or any(a in name for a in sys.argv[1:])]
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(chosen):
            path = written(Path(folder) / str(number), name)
            best = float("inf")
            for _ in range(5):
                began = time.process_time()
                reading = examine(path, environ={"A": "value-of-a"})
                best = min(best, time.process_time() - began)
                if best > 2:
                    break
            costs.append((best * 1000, name, path.stat().st_size, len(reading.problems)))
    for cost, name, size, problems in sorted(costs, reverse=True):
        print(f"{cost:8.1f} ms  {size / 1000:6.0f} kB  {problems:6} problems  {name}")


if __name__ == "__main__":
    measure()
