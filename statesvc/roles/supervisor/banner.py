"""What `up` prints once everything is ready: where it is, and the next step."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statesvc.roles.supervisor.child_plan import Plan, is_loopback


def banner(plan: Plan, *, service_dsn: str, environment: Mapping[str, str], new_key_file: Path | None) -> str:
    """The text. A demo on the loopback shows its key, so that the printed calls work; no other secret is shown."""
    others = ", ".join(f"{role} on {port}" for role, port in plan.ports.items() if role != "api")
    rows = [
        ("API", f"{plan.url}   calls: {plan.url}/docs   ({others})"),
        ("key", f"{_command(environment)} keys create --name me --scopes read,audit"),
    ]
    if plan.settings.database.database_url is None:
        rows.append(("data", str(plan.settings.database.data_dir.absolute())))
    rows.append(("database", f"psql {shlex.quote(without_password(service_dsn))}"))
    if new_key_file is not None:
        rows.append(("new", f"{new_key_file} opens all sealed data: keep a copy of it in a safe place"))
    if plan.demo_rate is not None and is_loopback(plan.host):
        rows.append(("try", f'curl -H "Authorization: Bearer {environment["STATESVC_BOOTSTRAP_KEY"]}" {plan.url}/v1/shipments'))
    rows.append(("stop", "Ctrl-C"))
    return "\n".join(["", "statesvc is running", *(f"  {name:<9} {value}" for name, value in rows), ""])


def without_password(dsn: str) -> str:
    """The address in key=value form, fit to be shown."""
    parts = {name: value for name, value in conninfo_to_dict(dsn).items() if name != "password"}
    return make_conninfo("", **parts)


def _command(environment: Mapping[str, str]) -> str:
    program = Path(sys.executable).with_name("statesvc")
    if not program.exists():
        words = [sys.executable, "-m", "statesvc"]
    else:
        words = [os.path.relpath(program) if program.is_relative_to(Path.cwd()) else str(program)]
    called = shlex.join(words)
    folder = environment.get("STATESVC_DATA_DIR")
    moved = folder is not None and "DATABASE_URL" not in environment and Path(folder) != Path.cwd() / ".statesvc"
    return f"STATESVC_DATA_DIR={shlex.quote(folder)} {called}" if moved and folder is not None else called
