"""The account that the cluster is rehearsed in: everything that cluster.yaml takes for granted is made there, under its own id."""

import ipaddress

from cluster_file import gpu_sizes

# Slow enough to be seen, fast enough to be waited for.
PACE = {"delay": 0.1, "launch_interval": 1.0, "signal_timeout": 120}
# vCPUs: whether the real account may have as many machines is for `infra validate --online` to say.
PLENTY = {code: 1_000_000 for code in ("L-1216C47A", "L-DB2E81BA", "L-417A185B", "L-34B43A08", "L-3819A6DF", "L-7212CCBC")}


class Account:
    pace = PACE

    def __init__(self, aws, cluster):
        self.aws, self.cluster = aws, cluster
        self.region = cluster.facts["region"]
        self.wishes = self._wishes()
        self.aws.control(**self.pace, **self.wishes)

    def client(self, service):
        return self.aws.client(service, self.cluster.account, self.region)

    def refuse_machines(self, stack, message):
        """Machines of this stack do not start from now on."""
        self.aws.control(**self.pace, **self.wishes, fail_launch={f"{stack}/Nodes": message})

    def allow_machines(self):
        self.aws.control(**self.pace, **self.wishes)

    def _wishes(self):
        facts, sizes = self.cluster.facts, gpu_sizes()
        existing = self.cluster.section("network").get("existing") or {}
        files = (self.cluster.section("storage").get("efs") or {}).get("fileSystemId")
        zone = self.cluster.section("dns").get("hostedZoneId")
        ids = [existing.get("vpcId"), *(subnet["id"] for subnet in existing.get("subnets", [])), files, zone]
        ids += [pool.get("capacityReservationId") for pool in self.cluster.pools]
        machines = {kind: [sizes[kind]["vcpus"], sizes[kind]["memoryGiB"], sizes[kind]["gpus"]] if kind in sizes else [4, 16, 0]
                    for kind in self.cluster.machine_types()}
        return {"ids": [name for name in ids if name], "zones": facts["availabilityZones"], "machines": machines, "quotas": PLENTY,
                "keys": {facts["kmsKeyArn"].rpartition("/")[2]: "Enabled"}}

    def make_what_is_named(self):
        """Yields each thing, and why it could not be made."""
        facts = self.cluster.facts
        parts = [("the key", facts["kmsKeyArn"], lambda: None)]
        if name := facts.get("keyName"):
            parts.append(("the key pair", name, lambda: self.client("ec2").create_key_pair(KeyName=name)))
        if place := facts.get("s3URI"):
            bucket = place.removeprefix("s3://").split("/")[0]
            parts.append(("the bucket", bucket, lambda: self._make_bucket(bucket)))
        if existing := self.cluster.section("network").get("existing"):
            parts.append(("the network", existing["vpcId"], lambda: self._make_network(existing)))
        if files := (self.cluster.section("storage").get("efs") or {}).get("fileSystemId"):
            parts.append(("the file system", files, self._make_file_system))
        if self.cluster.section("dns").get("manage", True):
            domain = facts["externalDNSName"].partition(".")[2]
            parts.append(("the hosted zone", domain, lambda: self._make_zone(domain)))
        for pool in self.cluster.pools:
            if reservation := pool.get("capacityReservationId"):
                parts.append(("the reservation", reservation, lambda pool=pool: self._make_reservation(pool)))
        for what, name, make in parts:
            try:
                make()
                yield f"{what} {name}", None
            except Exception as error:
                yield f"{what} {name}", error

    def left(self):
        """Stacks and machines that are still there, whatever anybody says."""
        pages = self.client("cloudformation").get_paginator("list_stacks").paginate()
        stacks = [stack["StackName"] for page in pages for stack in page["StackSummaries"]
                  if stack["StackStatus"] != "DELETE_COMPLETE"]
        pages = self.client("ec2").get_paginator("describe_instances").paginate()
        machines = [instance["InstanceId"] for page in pages for group in page["Reservations"]
                    for instance in group["Instances"] if instance["State"]["Name"] != "terminated"]
        return stacks + machines

    def _make_bucket(self, name):
        # The oldest region is the one that must not be named.
        place = {} if self.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
        self.client("s3").create_bucket(Bucket=name, **place)

    def _make_zone(self, domain):
        zone = self.client("route53").create_hosted_zone(Name=domain, CallerReference="rehearsal")["HostedZone"]["Id"]
        wanted = self.cluster.section("dns").get("hostedZoneId", "")
        if not zone.endswith(wanted):
            raise ValueError(f"it is {zone} here")

    def _make_file_system(self):
        self.client("efs").create_file_system(CreationToken="rehearsal", Encrypted=True)

    def _make_reservation(self, pool):
        zones = pool.get("availabilityZones") or self.cluster.facts["availabilityZones"]
        # One more for the pool to grow into.
        self.client("ec2").create_capacity_reservation(
            InstanceType=pool["instanceType"], InstancePlatform="Linux/UNIX", AvailabilityZone=zones[0],
            InstanceCount=pool.get("maxCount", pool.get("count", 1)) + 1)

    def _make_network(self, existing):
        """Public subnets lead to the internet, the others to it through a NAT gateway."""
        ec2 = self.client("ec2")
        network = ipaddress.ip_network(self.cluster.section("network").get("vpcCIDR", "10.0.0.0/16"))
        vpc = ec2.create_vpc(CidrBlock=str(network))["Vpc"]["VpcId"]
        for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
            ec2.modify_vpc_attribute(VpcId=vpc, **{attribute: {"Value": True}})
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        subnets, tables = {}, {}
        ranges = network.subnets(new_prefix=min(network.prefixlen + 5, 28))
        # In the file's order: that is the order in which ids are given out.
        for wanted, block in zip(existing["subnets"], ranges):
            subnet = ec2.create_subnet(
                VpcId=vpc, CidrBlock=str(block), AvailabilityZone=wanted["availabilityZone"])["Subnet"]["SubnetId"]
            table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
            subnets[subnet] = tables[table] = wanted["public"]
        # In the first public one, if there is any.
        place = max(subnets, key=subnets.get)
        nat = ec2.create_nat_gateway(SubnetId=place, AllocationId=address)["NatGateway"]["NatGatewayId"]
        for table, public in tables.items():
            way = {"GatewayId": gateway} if public else {"NatGatewayId": nat}
            ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **way)
