"""Try the package on systems as users have them: what `make platforms` runs, as root.

    python3 tests/platforms.py [--list] [--keep] [NAME...]      rows whose names contain one of these

A row installs a distribution with debootstrap, with nothing but the packages that the row names, copies the last
commit into it, and runs `make demo` as an ordinary user, then the command of the README that finds the planted
race. Other rows use interpreters of this machine. The mirror, the package index, certificates and proxies are those
that apt, pip and the environment of this machine have. A table ends the run, with a reason for each row that was not
tried. Every output is kept in build/platforms/.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
WORK = HERE / "build" / "platforms"
HOST = "this machine"
_started: set[Path] = set()  # systems of this run
COLUMNS = ("platform", "python", "pip", "compiler", "result", "s", "CPU s")
#: Names of environment variables that say how to reach package indexes.
CARRIED = re.compile(r"(?i)(pip|uv)_.*|.*_proxy|.*ssl_.*|.*_ca_.*|.*_cert(ificate)?s?")
RACE = "pto run examples/12_race.pto --sanitize race -- f32:64x128 f32:64x128 f32:64x128"
#: The planted race has to be found: the command fails, and names the code.
FIND = f'found=$({RACE} 2>&1) && exit 1; grep -o "error.PTO-E2201.*" <<<"$found"'
DEMO = f'make demo && export PATH="$PWD/.venv/bin:$PATH" && {FIND}'
VERSIONS = (
    'p=python; [ ! -x .venv/bin/python ] || p=.venv/bin/python; command -v $p >/dev/null || p=python3; echo "=python $($p -V 2>&1 | cut -d" " -f2)";'
    'echo "=pip $($p -m pip --version 2>/dev/null | cut -d" " -f2)";'
    'c=${CXX:-c++}; echo "=compiler $(command -v $c >/dev/null && $c --version | head -n 1 | sed "s/(.*)//")"'
)
#: What a user without network prepares where there is one.
DOWNLOAD = "python3 -m venv /tmp/get && /tmp/get/bin/pip download -q -c constraints.txt -d /tmp/wheels"


class NotTried(Exception):
    """The reason why a row was not tried."""


@dataclass(frozen=True)
class Row:
    name: str
    system: str  # a suite of Debian or Ubuntu, or HOST
    packages: str = ""
    before: str = ""  # with network
    command: str = DEMO
    setting: str = ""  # of the environment, or of `make`
    refused: str = ""  # the expected text of the command if it must fail
    folder: str = "pto"
    fresh: bool = False  # whether the system of earlier rows is replaced
    network: bool = True


def rows() -> Iterator[Row]:
    """Yield the rows; those of one system share it, so packages only get more, but for a fresh one."""
    usual = "git make g++ python3-dev python3-venv"  # those of the README
    yield Row("Debian 11", "bullseye", "python3 make g++", refused="expected Python 3.10 or newer")
    lacks = "apt install (python3-venv )?python3-dev g\\+\\+"
    yield Row("Debian 12 without Python", "bookworm", "make", refused=lacks)
    yield Row("Debian 12 without venv", "bookworm", "python3 make", refused=lacks)
    yield Row("Debian 12 without compiler", "bookworm", "python3-venv make", refused=lacks)
    yield Row("Debian 12", "bookworm", usual)
    yield Row("Debian 12, folder 'it's a demo'", "bookworm", usual, folder="it's a demo")
    yield Row("Debian 12, clang 15", "bookworm", f"{usual} clang-15", setting="CC=clang-15 CXX=clang++-15")
    offline = "PIP_NO_INDEX=1 PIP_FIND_LINKS=/tmp/wheels"
    needs = "numpy ml_dtypes scikit-build-core nanobind nanobind-backend cmake ninja"
    yield Row(
        "Debian 12, no network", "bookworm", usual, f"{DOWNLOAD} {needs}", setting=offline, network=False
    )
    yield Row(
        "Debian 12, wheel, no compiler, no network", "bookworm", "python3-venv", fresh=True, network=False,
        before=f"{DOWNLOAD} numpy ml_dtypes && cp dist/*.whl /tmp/wheels", setting=offline,
        command='python3 -m venv .venv && export PATH="$PWD/.venv/bin:$PATH" && pip install pto && cd /tmp && '
        f"pto doctor && pto examples copy all examples && bash examples/demo.sh && {FIND}",
    )  # fmt: skip
    yield Row("Debian 13, home not writable", "trixie", usual, setting="HOME=/nonexistent")
    yield Row("Debian unstable", "sid", usual)
    for name, suite in (("22.04", "jammy"), ("24.04", "noble"), ("26.04", "resolute")):
        yield Row(f"Ubuntu {name}", suite, usual)
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        yield Row(f"pyenv {version}", HOST, setting=f"PYTHON=pyenv:{version}")
    uv = "python3 -m venv uv && uv/bin/pip install -q uv && PATH=$PWD/uv/bin:$PATH"
    build = "uv venv -q .venv && uv pip install -q --config-settings cmake.define.PTO_PACKS=usual ."
    yield Row("uv", HOST, command=f'{uv} && {build} && export PATH="$PWD/.venv/bin:$PATH" && {FIND}')
    yield Row("uv, its own Python 3.14", HOST, before=f"{uv} && uv python install 3.14")


# ------------------------------------------------------------------------------------------ this machine


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def environment() -> dict[str, str]:
    """Return the settings of package indexes: of the environment, and of pip's files as variables."""
    found = {k: v for k, v in os.environ.items() if CARRIED.fullmatch(k)}
    pip = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    for name, value in re.findall(r"^\w+\.([\w-]+)='(.*)'$", pip.stdout, re.M):
        found.setdefault("PIP_" + name.upper().replace("-", "_"), " ".join(value.split("\\n")))
    return found


def named_paths(env: dict[str, str]) -> list[str]:
    """Return the files and folders that settings name. The files of an index may lie beside its folder `simple`."""
    words = {
        word.removeprefix("file://").removesuffix("/simple")
        for value in env.values()
        for word in value.split()
    }
    found = sorted(word for word in words if word.startswith("/") and os.path.exists(word))
    return [path for path in found if not any(path.startswith(other + "/") for other in found)]


def mirror(suite: str) -> tuple[str, str]:
    """Return the URL of the archive that has a suite, beside the one that apt uses here, and its distribution."""
    listed = output("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    found = re.search(r"^(\S*/)(?:debian|ubuntu)/?$", listed, re.M)
    if not found:
        raise NotTried("apt has no mirror here")
    for name in ("debian", "ubuntu"):
        try:
            with urllib.request.urlopen(f"{found[1]}{name}/dists/{suite}/InRelease", timeout=60):
                return found[1] + name, name
        except urllib.error.URLError:
            continue
    raise NotTried(f"no mirror has {suite}")


# ------------------------------------------------------------------------------------------------- systems


@dataclass(frozen=True)
class Root:
    """A folder with a system. A command sees nothing else, but for the files that the settings of this machine name.

    These files are read-only, and hidden from root: packages write their own.
    """

    path: Path
    env: dict[str, str]

    def run(self, command: str, log: Path, user: str = "user", network: bool = True) -> int:
        script = ["set -e", f"cd {shlex.quote(str(self.path))}"]
        for path in () if user == "root" else map(shlex.quote, named_paths(self.env)):
            script.append(
                f"[ -e .{path} ] || if [ -d {path} ]; then mkdir -p .{path}; else install -D /dev/null .{path}; fi"
            )
            script.append(f"mount --bind -o ro {path} .{path}")
        env = {
            "HOME": f"/home/{user}",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
        }
        shown = " ".join(f"{k}={shlex.quote(v)}" for k, v in {**self.env, **env}.items())
        inner = f"exec env -i {shown} bash -o pipefail -c {shlex.quote(command)}"
        script += [
            "mount -t proc proc proc",
            "mount -t tmpfs tmpfs dev/shm",
            f"exec chroot --userspec={user} . bash -c {shlex.quote(inner)}",
        ]
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *(() if network else ("--net",))]
        with log.open("a") as file:
            file.write(f"$ {command}\n")
            file.flush()
            return subprocess.call([*isolated, "bash", "-c", "\n".join(script)], stdout=file, stderr=file)


def bare(suite: str, env: dict[str, str]) -> Path:
    """Return the folder of a system as debootstrap leaves it, with a user."""
    if os.geteuid() or not shutil.which("debootstrap"):
        raise NotTried("needs root and debootstrap")
    base = WORK / "roots" / suite
    if base.is_dir():
        return base
    uri, distribution = mirror(suite)
    keys = Path(f"/usr/share/keyrings/{distribution}-archive-keyring.gpg")
    log = WORK / f"{suite}.log"
    if not keys.exists():  # Debian 13 has the keys of others
        source = Root(started("trixie", env), env)
        if source.run("apt-get update && apt-get install -y ubuntu-keyring", log, "root"):
            raise NotTried(f"no keys of {distribution}")
        keys = source.path / keys.relative_to("/")
    scripts = Path("/usr/share/debootstrap/scripts")
    script = next(
        s for s in (suite, "gutsy" if distribution == "ubuntu" else "sid") if (scripts / s).exists()
    )
    part = base.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    components = "--components=main" + (",universe" if distribution == "ubuntu" else "")
    command = ["debootstrap", "--variant=minbase", components, f"--keyring={keys}", suite, str(part), uri]
    with log.open("a") as file:
        if subprocess.call([*command, str(scripts / script)], stdout=file, stderr=file):
            raise NotTried(f"debootstrap failed: {log.relative_to(HERE)}")
    kept = [
        line for line in output("apt-config", "dump").splitlines() if re.match(r"Acquire::(http|Check)", line)
    ]
    (part / "etc/apt/apt.conf.d/99here").write_text(
        "\n".join([*kept, 'APT::Install-Recommends "false";', ""])
    )
    if Root(part, env).run("useradd -m user", log, "root"):
        raise NotTried(f"useradd failed: {log.relative_to(HERE)}")
    part.rename(base)
    return base


def started(suite: str, env: dict[str, str], fresh: bool = False) -> Path:
    """Return a system that rows may add packages to."""
    base, path = bare(suite, env), WORK / "running" / suite
    if fresh or path not in _started:
        _started.add(path)
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", base, path], check=True)
    return path


def copy_commit(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", HERE, "archive", "HEAD"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=True)
    if archive.wait():
        raise NotTried("needs a git checkout")


# ---------------------------------------------------------------------------------------------------- rows


def interpreter(setting: str) -> str:
    """Return a setting with the path of the interpreter of pyenv that it names."""
    wanted = setting.partition("pyenv:")[2]
    if not wanted:
        return setting
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(root.glob(f"versions/{wanted}.*/bin/python3"))
    if not found:
        raise NotTried(f"pyenv has no {wanted} here")
    return f"PYTHON={found[-1]}"


def attempt(row: Row, env: dict[str, str]) -> dict[str, str]:
    """Run a row, and return the cells of its line."""
    log = WORK / (re.sub(r"\W+", "-", row.name).strip("-") + ".log")
    log.write_text("")
    setting = interpreter(row.setting)
    if row.system == HOST:
        source = WORK / "running" / "host" / row.folder
        copy_commit(source)

        def run(command: str, network: bool = True) -> int:
            with log.open("a") as file:
                script = f"cd {shlex.quote(str(source))}\n{command}"
                return subprocess.call(["bash", "-o", "pipefail", "-c", script], stdout=file, stderr=file)
    else:
        root = Root(started(row.system, env, row.fresh), env)
        where = f"/srv/{row.folder}"
        source = root.path / where[1:]
        copy_commit(source)
        if "dist/" in row.before:
            wheels = [w for w in (HERE / "dist").glob("*.whl")] if (HERE / "dist").is_dir() else []
            if not wheels:
                raise NotTried("no wheel in dist/: make wheel")
            shutil.copytree(HERE / "dist", source / "dist")
        if row.packages and root.run(f"apt-get update && apt-get install -y {row.packages}", log, "root"):
            raise NotTried(f"no packages: {log.relative_to(HERE)}")
        root.run(f"chown -R user {shlex.quote(where)}; rm -rf /tmp/*", log, "root")

        def run(command: str, network: bool = True) -> int:
            return root.run(f"cd {shlex.quote(where)}\n{command}", log, network=network)

    export = f"export {setting}; " if setting else ""
    if row.before and run(row.before):
        raise NotTried(f"{row.before.split(' && ')[-1]} failed: {log.relative_to(HERE)}")
    begin, used = time.monotonic(), cpu()
    status = run(export + row.command, row.network)
    seconds, used = time.monotonic() - begin, cpu() - used
    text = log.read_text(errors="replace")
    if row.refused:
        said = re.search(row.refused, text)
        result = f"refused: {said[0]}" if status and said else "FAILED: not refused as it should be"
    else:
        result = "race found" if not status else f"FAILED: {log.relative_to(HERE)}"
    run(export + VERSIONS)
    versions = dict(re.findall(r"^=(\w+) (.*)$", log.read_text(errors="replace"), re.M))
    return {**versions, "result": result, "s": f"{seconds:.0f}", "CPU s": f"{used:.0f}"}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    p = argparse.ArgumentParser(prog="make platforms", description="Try the package on many systems.")
    p.add_argument("names", nargs="*", help="only rows whose names contain one of these")
    p.add_argument("--list", action="store_true", help="list the rows")
    p.add_argument(
        "--keep", action="store_true", help="keep the systems: bare ones for the next run, all for a look"
    )
    options = p.parse_args()
    chosen = [r for r in rows() if not options.names or any(n in r.name for n in options.names)]
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    env = environment()
    cells = []
    for row in chosen:
        try:
            found = attempt(row, env)
        except NotTried as reason:
            found = {"result": f"not tried: {reason}"}
        cells.append({"platform": row.name, **found})
        print(json.dumps(cells[-1]), flush=True)
    if not options.keep:
        shutil.rmtree(WORK / "running", ignore_errors=True)
        shutil.rmtree(WORK / "roots", ignore_errors=True)
    print()
    for line in (dict(zip(COLUMNS, COLUMNS, strict=True)), dict.fromkeys(COLUMNS, "---"), *cells):
        print("|", " | ".join(line.get(c, "") or "" for c in COLUMNS), "|")
    return any("FAILED" in line["result"] for line in cells)


if __name__ == "__main__":
    sys.exit(main())
