"""What the packages are made of, from the lock file: a bill of materials and the texts of licences.

    materials.py FOLDER PACKAGE...

writes FOLDER/echoless.cdx.json (CycloneDX) and FOLDER/THIRD-PARTY.txt for all these packages, as
linked on the platform TARGET.
"""

import json
import os
import pathlib
import subprocess
import sys
import tomllib

TARGET = os.environ.get("TARGET", "x86_64-unknown-linux-gnu")
TEXTS = ("LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")
CODE = (".rs", ".c", ".h")


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def main(folder, *packages):
    roots = [part for package in packages for part in ("-p", package)]
    tree = cargo("tree", "--locked", "--edges=normal", "--target", TARGET, "--prefix=none", *roots)
    linked = sorted({tuple(line.split()[:2]) for line in tree.splitlines() if line})
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1"))
    known = {(package["name"], "v" + package["version"]): package for package in metadata["packages"]}
    lock = tomllib.loads(pathlib.Path("Cargo.lock").read_text())["package"]
    sums = {(entry["name"], "v" + entry["version"]): entry.get("checksum") for entry in lock}

    components, users = [], {}
    for crate in linked:
        name, version, package = crate[0], crate[1][1:], known[crate]
        licence = (package["license"] or "").replace("/", " OR ")
        if sums[crate] is None:  # ours
            continue
        components.append({
            "type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}",
            "licenses": [{"expression": licence}], "hashes": [{"alg": "SHA-256", "content": sums[crate]}],
        })
        root = pathlib.Path(package["manifest_path"]).parent
        files = {file for pattern in TEXTS for file in root.rglob(pattern) if file.is_file()}
        # Of programs beside a library that are not linked, such as xz.
        files = {file for file in files if file.suffix not in CODE and "GPL" not in file.name}
        texts = {file.read_text(errors="replace").strip() for file in files}
        # Where that is one of two licences, the other one is taken.
        texts = {text for text in texts if not text.startswith("GNU GENERAL PUBLIC LICENSE")}
        for text in sorted(texts) or [f"Licence: {licence}. The package has no text of it."]:
            users.setdefault(text, []).append(f"{name} {version}")

    version = next(package["version"] for package in metadata["packages"] if package["name"] == packages[0])
    component = {"type": "application", "name": "echoless", "version": version}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": component}, "components": components}
    out = pathlib.Path(folder)
    (out / "echoless.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
    notices = ["The files of echoless have code of these Rust packages and of the Rust standard library"
               " (MIT OR Apache-2.0)."]
    for text, crates in sorted(users.items(), key=lambda item: item[1]):
        notices.append("=" * 80 + "\n" + ", ".join(crates) + "\n\n" + text)
    (out / "THIRD-PARTY.txt").write_text("\n\n".join(notices) + "\n")


main(*sys.argv[1:])
