"""Capacity reservations and capacity blocks, and which machines cannot start because of them.

PutCapacityBlock, which AWS does not have, makes a block, or changes the one of CapacityReservationId: InstanceType, AvailabilityZone,
InstanceCount, StartDate and EndDate, and a State that is not that of its times. ForgetCapacityBlock deletes it, as AWS does some time
after its end.
"""

import datetime
import secrets

from ministack.core.responses import AccountRegionScopedDict, get_account_id
from ministack.services import ec2

from stand_in.lookups import answer

PLANNED = "aws:ec2capacityreservation:incrementalRequestedQuantity"
reservations = AccountRegionScopedDict()


def read_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def block_state(block):
    now = datetime.datetime.now(datetime.timezone.utc)
    if now < read_time(block["startDate"]):
        return "scheduled"
    return "active" if now < read_time(block["endDate"]) else "expired"


def describe_reservation(reservation):
    described = {"ownerId": get_account_id(), "tenancy": "default", "instancePlatform": "Linux/UNIX", "state": "active",
                 "reservationType": "default", "availableInstanceCount": reservation["totalInstanceCount"],
                 "instanceMatchCriteria": "open"} | reservation
    if described["reservationType"] == "default":
        return described
    described["state"] = reservation.get("state") or block_state(reservation)
    if described["state"] != "active":
        # As AWS shows a block outside of its time.
        planned = str(described["totalInstanceCount"])
        described |= {"totalInstanceCount": 0, "availableInstanceCount": 0, "tagSet": [{"key": PLANNED, "value": planned}]}
    return described


def reservation_id():
    return f"cr-{secrets.token_hex(9)[:17]}"


def create_reservation(parameters):
    name = reservation_id()
    reservations[name] = {
        "capacityReservationId": name, "instanceType": ec2._p(parameters, "InstanceType"),
        "availabilityZone": ec2._p(parameters, "AvailabilityZone"),
        "totalInstanceCount": int(ec2._p(parameters, "InstanceCount"))}
    return answer("CreateCapacityReservation", {"capacityReservation": describe_reservation(reservations[name])})


def put_block(parameters):
    given = {key[0].lower() + key[1:]: ec2._p(parameters, key) for key in (
        "InstanceType", "AvailabilityZone", "StartDate", "EndDate", "State") if ec2._p(parameters, key)}
    if count := ec2._p(parameters, "InstanceCount"):
        given["totalInstanceCount"] = int(count)
    name = ec2._p(parameters, "CapacityReservationId") or reservation_id()
    reservations[name] = reservations.get(name, {
        "capacityReservationId": name, "reservationType": "capacity-block", "endDateType": "limited"}) | given
    return answer("PutCapacityBlock", {"capacityReservation": describe_reservation(reservations[name])})


def forget_block(parameters):
    del reservations[ec2._p(parameters, "CapacityReservationId")]
    return answer("ForgetCapacityBlock", {"return": True})


def describe_reservations(parameters):
    names = ec2._parse_member_list(parameters, "CapacityReservationId")
    if unknown := [name for name in names if name not in reservations]:
        return ec2._error("InvalidCapacityReservationId.NotFound",
                          f"The capacity reservation ID '{unknown[0]}' does not exist", 400)
    return answer("DescribeCapacityReservations", {"capacityReservationSet": [
        describe_reservation(reservation) for name, reservation in reservations.items() if not names or name in names]})


ec2._ACTION_MAP.update(CreateCapacityReservation=create_reservation, DescribeCapacityReservations=describe_reservations,
                       PutCapacityBlock=put_block, ForgetCapacityBlock=forget_block)


# --- Launches ----------------------------------------------------------------------------------------------------------------


def reservation_of(launch):
    target = launch.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    return target.get("CapacityReservationId")


def launch_fault(launch):
    """What EC2 would say against a launch because of the reservation that it asks for."""
    name = reservation_of(launch)
    for_block = launch.get("InstanceMarketOptions", {}).get("MarketType") == "capacity-block"
    found = reservations.get(name, {})
    is_block = found.get("reservationType") == "capacity-block"
    if for_block != is_block:
        return "The market type (purchasing) option is not valid. Choose a different market type and try again."
    if not is_block:
        return None
    state = describe_reservation(found)["state"]
    if state == "scheduled":
        return "InvalidCapacityReservationState.PendingActivation: Your Capacity Block is not active yet."
    if state != "active":
        return f"InvalidCapacityReservationState: The capacity reservation {name} is {state}."
    running = [instance for instance in ec2._instances.values()
               if instance["State"]["Name"] == "running" and reservation_of(instance.get("Launch", {})) == name]
    if len(running) >= found["totalInstanceCount"]:
        return "ReservationCapacityExceeded: The requested reservation does not have sufficient capacity."
    return None
