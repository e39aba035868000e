"""What real machines need to know of one account and region: who runs, what is attached, and what names and load balancers point at.

`GET /_site?account=111122223333&region=us-west-2` answers with it, so that whoever boots machines needs one request a look.
"""

import re
import urllib.parse

from ministack.core.responses import get_region, request_scope
from ministack.services import alb, autoscaling, ec2, route53

from stand_in.network import classic_balancers, settle_interfaces


def describe_site(query):
    asked = dict(urllib.parse.parse_qsl(query))
    with request_scope(asked["account"], asked["region"]):
        settle_interfaces()
        balancers = [describe_balancer(balancer) for balancer in list(alb._lbs.values())]
        balancers += [describe_classic_balancer(balancer) for balancer in list(classic_balancers.values())]
        addresses = {balancer["name"].lower(): balancer["addresses"] for balancer in balancers} | file_system_addresses()
        return {"machines": [describe_machine(instance) for instance in list(ec2._instances.values()) if "Launch" in instance],
                "balancers": balancers, "records": describe_records(addresses)}


def describe_machine(instance):
    launch, instance_id = instance["Launch"], instance["InstanceId"]
    interface = next((interface for interface in list(ec2._network_interfaces.values())
                      if interface["Attachment"] and interface["Attachment"]["InstanceId"] == instance_id), {})
    return {
        "id": instance_id, "state": instance["State"]["Name"], "type": instance["InstanceType"],
        "address": instance["PrivateIpAddress"], "name": instance["PrivateDnsName"],
        "zone": instance["Placement"]["AvailabilityZone"], "subnet": instance["SubnetId"], "network": instance["VpcId"],
        "mac": interface.get("MacAddress", ""), "profile": launch.get("IamInstanceProfile", {}).get("Arn", ""),
        "hopLimit": launch.get("MetadataOptions", {}).get("HttpPutResponseHopLimit", 1), "userData": launch.get("UserData", ""),
        "tags": {tag["Key"]: tag["Value"] for tag in ec2._tags.get(instance_id, [])},
        "volumes": {volume["VolumeId"]: int(volume["Size"]) for volume in list(ec2._volumes.values())
                    for attachment in volume["Attachments"]
                    if attachment["InstanceId"] == instance_id and attachment["Device"] != instance["RootDeviceName"]},
    }


def describe_balancer(balancer):
    arn = balancer["LoadBalancerArn"]
    listeners = [describe_listener(listener) for listener in list(alb._listeners.values()) if listener["LoadBalancerArn"] == arn]
    # Without a healthy target, it tries all of them.
    return {"name": balancer["DNSName"], "addresses": addresses_of(f"ELB {arn.split(':loadbalancer/')[1]}"), "listeners": listeners,
            "triesUnhealthy": True}


def describe_classic_balancer(balancer):
    targets = running(instance["InstanceId"] for instance in balancer["Instances"])
    protocol, _, rest = balancer["HealthCheck"]["Target"].partition(":")
    port, slash, path = rest.partition("/")
    check = {"protocol": protocol, "port": int(port), "path": slash + path}
    listeners = [{"port": listener["LoadBalancerPort"], "targetPort": listener["InstancePort"], "targets": targets, "healthCheck": check}
                 for listener in (description["Listener"] for description in balancer["ListenerDescriptions"])]
    return {"name": balancer["DNSName"], "addresses": addresses_of(f"ELB {balancer['LoadBalancerName']}"), "listeners": listeners,
            "triesUnhealthy": False}


def addresses_of(description):
    return sorted(interface["PrivateIpAddress"] for interface in list(ec2._network_interfaces.values())
                  if interface["Description"] == description)


def running(instance_ids):
    """The addresses of the machines that run, of those that are registered."""
    return {instance_id: ec2._instances[instance_id]["PrivateIpAddress"] for instance_id in sorted(instance_ids)
            if ec2._instances.get(instance_id, {}).get("State", {}).get("Name") == "running"}


def describe_listener(listener):
    arn = listener["DefaultActions"][0]["TargetGroupArn"]
    group = alb._tgs[arn]
    registered = {target["Id"] for target in alb._targets.get(arn, [])}
    for scaling_group in list(autoscaling._asgs.values()):
        if arn in scaling_group.get("TargetGroupARNs", []):
            registered |= {member["InstanceId"] for member in scaling_group["Instances"]}
    port, check_port = int(group["Port"]), group["HealthCheckPort"]
    return {"port": int(listener["Port"]), "targetPort": port, "targets": running(registered),
            "healthCheck": {"protocol": group["HealthCheckProtocol"], "path": group["HealthCheckPath"],
                            "port": port if check_port == "traffic-port" else int(check_port)}}


def file_system_addresses():
    """The addresses of mount targets, by the name of their file system."""
    found = {}
    for interface in list(ec2._network_interfaces.values()):
        if match := re.match(r"EFS mount target for (fs-\w+)", interface["Description"]):
            name = f"{match.group(1)}.efs.{get_region()}.amazonaws.com"
            found.setdefault(name, []).append(interface["PrivateIpAddress"])
    return found


def describe_records(addresses):
    """The addresses of every name, of private and of public hosted zones; `addresses` are those of AWS's own names."""
    found = dict(addresses)
    for zone_id in list(route53._zones):
        for record in list(route53._records.get(zone_id, [])):
            name = record["Name"].rstrip(".").lower()
            values = [value if isinstance(value, str) else value["Value"] for value in record.get("ResourceRecords", [])]
            alias = (record.get("AliasTarget") or {}).get("DNSName") or (values[0] if record["Type"] == "CNAME" else "")
            if alias:
                found[name] = addresses.get(alias.rstrip(".").lower().removeprefix("dualstack."), [])
            elif record["Type"] == "A":
                found[name] = values
    return found
