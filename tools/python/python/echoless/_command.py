"""The command ``echoless``, for whole files."""

import json
import os
import shutil
import subprocess
import tempfile


def dedup_file(inputs, output, *, command=None, **options):
    """Removes duplicate records of files by the command ``echoless dedup``, which must be
    installed: it is found on PATH, or is ``command``.

    ``inputs`` is a path or a list of them. Options are those of the command, with ``_`` for ``-``:
    ``key="1,2"``, ``memory="1GiB"``, ``header=True``. A list repeats the option. Returns the
    statistics of the run (``--stats``) as a dict.

    Raises FileNotFoundError if there is no such command, and RuntimeError with its line if it
    fails.
    """
    found = shutil.which("echoless" if command is None else os.fspath(command))
    if found is None:
        raise FileNotFoundError(
            f"the command {command or 'echoless'} is not installed: build it with "
            "`cargo install --path tools/cli`, or pass its path as command="
        )
    if isinstance(inputs, (str, bytes, os.PathLike)):
        inputs = [inputs]
    with tempfile.TemporaryDirectory() as folder:
        stats = os.path.join(folder, "stats.json")
        line = [found, "dedup", "--output", os.fspath(output), "--stats", stats]
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if one is True:
                    line.append(flag)
                elif one is not None and one is not False:
                    line.append(f"{flag}={one}")
        line += ["--", *map(os.fspath, inputs)]
        run = subprocess.run(
            line, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        if run.returncode != 0:
            text = run.stderr.strip() or f"echoless ended with {run.returncode}"
            raise RuntimeError(text.removeprefix("echoless: "))
        with open(stats, encoding="utf-8") as file:
            return json.load(file)
