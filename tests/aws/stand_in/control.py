"""The file with which a test says what fails. launcher.py describes its keys."""

import datetime
import json
import os

from ministack.core.responses import get_account_id

NUMBER = (int, float)
KEYS = {
    "accounts": dict,
    "ages": dict,
    "backwards": bool,
    "checks_told_after": NUMBER,
    "console": dict,
    "delay": NUMBER,
    "dns_pending": NUMBER,
    "drift_delay": NUMBER,
    "fail_checks": dict,
    "fail_create": dict,
    "fail_delete": dict,
    "fail_drift": dict,
    "fail_launch": dict,
    "fail_rollback": dict,
    "fail_update": dict,
    "finish_after": NUMBER,
    "finish_status": str,
    "force_status": dict,
    "gone_images": list,
    "hold": list,
    "ids": list,
    "keys": dict,
    "late_events": dict,
    "launch_interval": NUMBER,
    "lose_events": dict,
    "machines": dict,
    "missing_roles": list,
    "no_signal": list,
    "not_offered": list,
    "quotas": dict,
    "real_machines": bool,
    "recovery_points": dict,
    "signal_timeout": NUMBER,
    "unpriced": list,
    "zones": list,
}


def control():
    with open(os.environ["CONTROL_FILE"], encoding="utf-8") as file:
        settings = json.load(file)
    check(settings)
    for own in settings.get("accounts", {}).values():
        check(own)
    return settings | settings.get("accounts", {}).get(get_account_id(), {})


def check(settings):
    for key, value in settings.items():
        if key not in KEYS:
            raise ValueError(f"the control file has an unknown key: {key}")
        if not isinstance(value, KEYS[key]):
            raise ValueError(f"the control file has a value of the wrong type: {key}: {value!r}")


def made_at(name, made):
    """When something was made, as the file would have it; times are in AWS's ISO format."""
    age = control().get("ages", {}).get(name)
    if age is None:
        return made
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=age)
    return then.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def writing():
    """Another value each time the file is written."""
    status = os.stat(os.environ["CONTROL_FILE"])
    return status.st_ino, status.st_mtime_ns


def names_of(stack_name, logical_id):
    """How the file may name a resource: pools all call their group the same."""
    return logical_id, f"{stack_name}/{logical_id}"
