"""Classic load balancers of the stand-in, as the cloud controller manager creates and changes them, and the security groups it asks for."""

import unittest

from account_case import REGION, NetworkCase, setUpModule  # noqa: F401

TAGS = [{"Key": "kubernetes.io/cluster/mine", "Value": "owned"}]
LISTENER = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30000}


class Case(NetworkCase):
    def machine(self):
        return self.ec2.run_instances(ImageId="ami-00000000000000001", InstanceType="m5.large", MinCount=1, MaxCount=1,
                                      SubnetId=self.subnet)["Instances"][0]


class ClassicBalancers(Case):
    def setUp(self):
        super().setUp()
        self.elb.create_load_balancer(LoadBalancerName="a1", Subnets=[self.subnet], SecurityGroups=[self.group], Tags=TAGS,
                                      Listeners=[LISTENER])

    def described(self):
        [balancer] = self.elb.describe_load_balancers(LoadBalancerNames=["a1"])["LoadBalancerDescriptions"]
        return balancer

    def listeners(self):
        return [description["Listener"] for description in self.described()["ListenerDescriptions"]]

    def test_a_new_one_is_as_aws_makes_it(self):
        balancer = self.described()
        self.assertEqual((balancer["Scheme"], balancer["AvailabilityZones"], balancer["Instances"]),
                         ("internet-facing", [f"{REGION}a"], []))
        self.assertEqual(self.listeners(), [LISTENER])
        self.assertEqual(balancer["HealthCheck"], {
            "Target": "TCP:30000", "Interval": 30, "Timeout": 5, "UnhealthyThreshold": 2, "HealthyThreshold": 10})
        self.assertEqual(self.elb.describe_load_balancer_attributes(LoadBalancerName="a1")["LoadBalancerAttributes"], {
            "CrossZoneLoadBalancing": {"Enabled": False}, "AccessLog": {"Enabled": False},
            "ConnectionDraining": {"Enabled": False, "Timeout": 300}, "ConnectionSettings": {"IdleTimeout": 60}})

    def test_what_cannot_be_made(self):
        new = {"LoadBalancerName": "a2", "Listeners": [LISTENER], "Subnets": [self.subnet]}
        for code, change in {
            "DuplicateLoadBalancerName": {"LoadBalancerName": "a1"},
            "SubnetNotFound": {"Subnets": ["subnet-0123456789abcdef0"]},
            "InvalidSecurityGroup": {"SecurityGroups": ["sg-0123456789abcdef0"]},
            "ValidationError": {"Listeners": []},
        }.items():
            self.refused(code, self.elb.create_load_balancer, **new | change)
        self.assertEqual(len(self.elb.describe_load_balancers()["LoadBalancerDescriptions"]), 1)

    def test_attributes_that_are_not_named_stay(self):
        changed = self.elb.modify_load_balancer_attributes(
            LoadBalancerName="a1", LoadBalancerAttributes={"ConnectionSettings": {"IdleTimeout": 90}, "AccessLog": {"Enabled": False}})
        found = self.elb.describe_load_balancer_attributes(LoadBalancerName="a1")["LoadBalancerAttributes"]
        self.assertEqual(changed["LoadBalancerAttributes"], found)
        self.assertEqual((found["ConnectionSettings"], found["ConnectionDraining"]),
                         ({"IdleTimeout": 90}, {"Enabled": False, "Timeout": 300}))
        # Another begins as they all do.
        self.elb.create_load_balancer(LoadBalancerName="a2", Subnets=[self.subnet], Listeners=[LISTENER])
        other = self.elb.describe_load_balancer_attributes(LoadBalancerName="a2")["LoadBalancerAttributes"]
        self.assertEqual(other["ConnectionSettings"], {"IdleTimeout": 60})

    def test_health_check(self):
        wanted = {"Target": "TCP:31000", "Interval": 10, "Timeout": 5, "UnhealthyThreshold": 6, "HealthyThreshold": 2}
        self.assertEqual(self.elb.configure_health_check(LoadBalancerName="a1", HealthCheck=wanted)["HealthCheck"], wanted)
        self.assertEqual(self.described()["HealthCheck"], wanted)

    def test_listeners_are_added_and_deleted(self):
        other = LISTENER | {"LoadBalancerPort": 443, "InstancePort": 30001}
        self.elb.create_load_balancer_listeners(LoadBalancerName="a1", Listeners=[other])
        self.refused("DuplicateListener", self.elb.create_load_balancer_listeners, LoadBalancerName="a1", Listeners=[other])
        self.assertEqual(self.listeners(), [LISTENER, other])
        self.elb.delete_load_balancer_listeners(LoadBalancerName="a1", LoadBalancerPorts=[80])
        self.assertEqual(self.listeners(), [other])

    def test_tags_are_added(self):
        added = {"Key": "team", "Value": "vision"}
        self.elb.add_tags(LoadBalancerNames=["a1"], Tags=[added])
        self.elb.add_tags(LoadBalancerNames=["a1"], Tags=[added])
        [described] = self.elb.describe_tags(LoadBalancerNames=["a1"])["TagDescriptions"]
        self.assertEqual(described["Tags"], [*TAGS, added])

    def test_machines_are_registered_and_deregistered(self):
        first, second = (self.machine()["InstanceId"] for _ in range(2))
        named = [{"InstanceId": first}, {"InstanceId": second}]
        for _ in range(2):
            answer = self.elb.register_instances_with_load_balancer(LoadBalancerName="a1", Instances=named)
            self.assertEqual(answer["Instances"], named)
        self.assertEqual(self.described()["Instances"], named)
        # A machine that was terminated stays registered until someone deregisters it, and does not come back.
        self.ec2.terminate_instances(InstanceIds=[first])
        self.assertEqual(self.described()["Instances"], named)
        answer = self.elb.deregister_instances_from_load_balancer(LoadBalancerName="a1", Instances=named[:1])
        self.assertEqual(answer["Instances"], named[1:])
        self.refused("InvalidInstance", self.elb.register_instances_with_load_balancer, LoadBalancerName="a1", Instances=named[:1])
        self.assertEqual(self.described()["Instances"], named[1:])

    def test_a_load_balancer_that_is_gone_is_an_error(self):
        self.elb.delete_load_balancer(LoadBalancerName="a1")
        for call, more in {
            self.elb.describe_load_balancer_attributes: {},
            self.elb.register_instances_with_load_balancer: {"Instances": [{"InstanceId": "i-1"}]},
            self.elb.create_load_balancer_listeners: {"Listeners": [LISTENER]},
        }.items():
            self.refused("LoadBalancerNotFound", call, LoadBalancerName="a1", **more)
        self.refused("LoadBalancerNotFound", self.elb.add_tags, LoadBalancerNames=["a1"], Tags=TAGS)

    def test_the_site_names_its_targets(self):
        first, second = self.machine(), self.machine()
        self.elb.register_instances_with_load_balancer(
            LoadBalancerName="a1", Instances=[{"InstanceId": machine["InstanceId"]} for machine in (first, second)])
        self.ec2.terminate_instances(InstanceIds=[second["InstanceId"]])
        [balancer] = self.site()["balancers"]
        [address] = balancer["addresses"]
        self.assertTrue(address.startswith("10.0.0."))
        self.assertEqual(balancer, {
            "name": self.described()["DNSName"], "addresses": [address], "triesUnhealthy": False, "listeners": [
                {"port": 80, "targetPort": 30000, "targets": {first["InstanceId"]: first["PrivateIpAddress"]},
                 "healthCheck": {"protocol": "TCP", "port": 30000, "path": ""}}]})
        self.assertEqual(self.site()["records"][balancer["name"]], [address])
        self.elb.configure_health_check(LoadBalancerName="a1", HealthCheck={
            "Target": "HTTP:32000/healthz", "Interval": 10, "Timeout": 5, "UnhealthyThreshold": 6, "HealthyThreshold": 2})
        self.assertEqual(self.site()["balancers"][0]["listeners"][0]["healthCheck"],
                         {"protocol": "HTTP", "port": 32000, "path": "/healthz"})
        self.elb.delete_load_balancer(LoadBalancerName="a1")
        self.assertEqual(self.site()["balancers"], [])


class SecurityGroups(Case):
    def found(self, **asked):
        return {group["GroupName"] for group in self.ec2.describe_security_groups(**asked)["SecurityGroups"]}

    def by(self, name, *values, **more):
        return self.found(Filters=[{"Name": name, "Values": list(values)}], **more)

    def test_filters(self):
        two = self.make_group("two")
        self.ec2.authorize_security_group_ingress(GroupId=two, IpPermissions=[
            {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}])
        self.assertEqual(self.found(), {"default", "one", "two"})
        self.assertEqual(self.by("ip-permission.group-id", self.group), {"two"})
        self.assertEqual(self.by("ip-permission.group-id", two), set())
        self.assertEqual(self.by("group-id", self.group, two), {"one", "two"})
        self.assertEqual(self.by("group-id", two, GroupIds=[self.group]), set())
        self.assertEqual(self.by("group-id", two, GroupIds=[two]), {"two"})
        self.assertEqual(self.found(Filters=[{"Name": "group-id", "Values": [two]}, {"Name": "group-name", "Values": ["one"]}]), set())
        self.assertEqual(self.by("vpc-id", "vpc-0123456789abcdef0"), set())
        self.refused("InvalidGroup.NotFound", self.found, GroupIds=["sg-0123456789abcdef0"])


if __name__ == "__main__":
    unittest.main()
