"""Auto Scaling groups of the stand-in for AWS: sizes, launches, signals, and machines that others boot."""

import unittest

from account_case import TAGS, setUpModule  # noqa: F401
from stack_case import StackCase, gateways, pool


class Groups(StackCase):
    """Auto Scaling."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "CREATE_COMPLETE")

    def test_description(self):
        group = self.group()
        self.assertEqual({(member["LifecycleState"], member["HealthStatus"], member["AvailabilityZone"], member["InstanceType"],
                           member["LaunchTemplate"]["Version"]) for member in group["Instances"]},
                         {("InService", "Healthy", "us-west-2a", "m5.large", "1")})
        self.assertIn(TAGS[0], [{"Key": tag["Key"], "Value": tag["Value"]} for tag in group["Tags"]])
        self.assertEqual(group["AvailabilityZones"], ["us-west-2a"])

        def found(**question):
            return len(self.autoscaling.describe_auto_scaling_groups(**question)["AutoScalingGroups"])

        self.assertEqual([found(Filters=[{"Name": "tag:infra:cluster", "Values": [name]}]) for name in ("mine", "other")], [1, 0])
        self.assertEqual([found(AutoScalingGroupNames=[name]) for name in (group["AutoScalingGroupName"], "other")], [1, 0])

    def test_mixed(self):
        template = pool()
        nodes = template["Resources"]["Nodes"]["Properties"]
        nodes["MixedInstancesPolicy"] = {
            "InstancesDistribution": {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 0},
            "LaunchTemplate": {"LaunchTemplateSpecification": nodes.pop("LaunchTemplate"),
                               "Overrides": [{"InstanceType": "g5.xlarge"}, {"InstanceType": "g5.2xlarge"}]}}
        self.assertEqual(self.run_stack(template, "CREATE", "other"), "CREATE_COMPLETE")
        group = next(group for group in self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
                     if "MixedInstancesPolicy" in group)
        policy = group["MixedInstancesPolicy"]
        self.assertEqual([override["InstanceType"] for override in policy["LaunchTemplate"]["Overrides"]],
                         ["g5.xlarge", "g5.2xlarge"])
        self.assertEqual(policy["InstancesDistribution"]["OnDemandBaseCapacity"], 0)
        self.assertEqual(group["Instances"][0]["InstanceType"], "g5.xlarge")
        self.assertEqual({machine["InstanceType"]: machine.get("InstanceLifecycle") for machine in self.machines().values()},
                         {"g5.xlarge": "spot", "m5.large": None})

    def test_activities(self):
        self.assertEqual(len(self.activities("Successful")), 2)
        name = self.group()["AutoScalingGroupName"]
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=4)
        pages = [self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=3)]
        pages.append(self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=3,
                                                                  NextToken=pages[0]["NextToken"]))
        self.assertEqual([len(page["Activities"]) for page in pages], [3, 1])
        self.assertNotIn("NextToken", pages[1])
        starts = [activity["StartTime"] for page in pages for activity in page["Activities"]]
        self.assertEqual(starts, sorted(starts, reverse=True))
        self.assertEqual(pages[0]["Activities"][0]["Progress"], 100)
        self.refused("ValidationError", self.autoscaling.describe_scaling_activities, AutoScalingGroupName="other")
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        self.refused("ValidationError", self.autoscaling.describe_scaling_activities, AutoScalingGroupName=name)
        remembered = self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, IncludeDeletedGroups=True)
        launches = [activity for activity in remembered["Activities"] if activity["Description"].startswith("Launching")]
        self.assertEqual(len(launches), 4)

    def test_termination(self):
        def terminate(machine, fewer):
            return self.autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=machine, ShouldDecrementDesiredCapacity=fewer)["Activity"]

        first, second = self.machines()
        self.assertEqual(terminate(first, False)["StatusCode"], "InProgress")
        self.assertEqual((len(self.machines()), first in self.machines(), second in self.machines()), (2, False, True))
        terminate(second, True)
        self.assertEqual((len(self.machines()), self.group()["DesiredCapacity"]), (1, 1))
        self.refused("ValidationError.*not found", terminate, machine=first, fewer=False)
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=self.group()["AutoScalingGroupName"], MinSize=1)
        self.refused("desiredSize equals minSize", terminate, machine=list(self.machines())[0], fewer=True)

    def test_sizes(self):
        name = self.group()["AutoScalingGroupName"]
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=3)
        self.assertEqual(len(self.machines()), 3)
        self.refused("above max value 4", self.autoscaling.set_desired_capacity, AutoScalingGroupName=name, DesiredCapacity=5)
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=1)
        self.assertEqual((len(self.machines()), self.group()["DesiredCapacity"]), (1, 1))
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
        self.assertEqual(self.machines(), {})

    def test_sizes_that_someone_else_has_set_stay(self):
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=self.group()["AutoScalingGroupName"], DesiredCapacity=3)
        self.assertEqual(self.run_stack(pool(count=2, maximum=5)), "UPDATE_COMPLETE")
        self.assertEqual((self.group()["DesiredCapacity"], self.group()["MaxSize"], len(self.machines())), (3, 5, 3))
        self.assertEqual(self.run_stack(pool(count=1, maximum=5)), "UPDATE_COMPLETE")
        self.assertEqual(self.group()["DesiredCapacity"], 1)

    def test_processes(self):
        name = self.group()["AutoScalingGroupName"]
        self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch", "AZRebalance"])
        self.autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])
        self.assertEqual([process["ProcessName"] for process in self.group()["SuspendedProcesses"]], ["AZRebalance"])

    def test_machines(self):
        first, second = self.machines()
        of_cluster = [{"Name": "tag:infra:cluster", "Values": ["mine"]}]
        found = self.ec2.describe_instances(Filters=of_cluster + [{"Name": "instance-id", "Values": [first]}])["Reservations"]
        self.assertEqual([machine["InstanceId"] for reservation in found for machine in reservation["Instances"]], [first])
        self.assertRegex(self.machines()[first]["PrivateDnsName"], r"^ip-10-0-0-\d+\.us-west-2\.compute\.internal$")

        def console(machine):
            return self.ec2.get_console_output(InstanceId=machine).get("Output", "")

        self.assertEqual(console(first), "")
        for name in (first, "Nodes", self.group()["AutoScalingGroupName"], "*"):
            self.aws.control(console={name: "no route to host"})
            self.assertEqual(console(first), "no route to host", name)
        self.aws.control(console={first: "one", "*": "other"})
        self.assertEqual((console(first), console(second)), ("one", "other"))
        self.refused("InvalidInstanceID.NotFound", self.ec2.get_console_output, InstanceId="i-00000000000000000")

    def test_latest_console_output_of_an_old_machine(self):
        self.assertEqual(self.run_stack(pool("p3.2xlarge"), "CREATE", "other"), "CREATE_COMPLETE")
        old, new = sorted(self.machines().values(), key=lambda machine: machine["InstanceType"], reverse=True)[:2]
        self.refused("UnsupportedOperation", self.ec2.get_console_output, InstanceId=old["InstanceId"], Latest=True)
        self.ec2.get_console_output(InstanceId=old["InstanceId"])
        self.ec2.get_console_output(InstanceId=new["InstanceId"], Latest=True)


class Launches(StackCase):
    NOT_ENOUGH = r"Received 0 SUCCESS signal\(s\) out of {}\.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"

    def reason(self, logical_id="Nodes"):
        return next(reason for name, status, reason in self.events() if name == logical_id and status.endswith("_FAILED"))

    def test_creation_waits_and_continues(self):
        self.aws.control(fail_launch={"Nodes": "We currently do not have sufficient capacity"}, launch_interval=0.05, signal_timeout=600)
        self.start(pool(count=2), "CREATE")
        failed = self.soon(lambda: self.activities("Failed")[2:] and self.activities("Failed"))
        self.assertEqual(failed[0]["StatusMessage"], "We currently do not have sufficient capacity")
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        resource = self.cloudformation.describe_stack_resource(StackName="pool", LogicalResourceId="Nodes")["StackResourceDetail"]
        self.assertEqual((resource["ResourceStatus"], resource["PhysicalResourceId"]),
                         ("CREATE_IN_PROGRESS", self.group()["AutoScalingGroupName"]))
        self.aws.control()
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.assertEqual(len(self.machines()), 2)
        signals = [reason for name, _, reason in self.events() if name == "Nodes" and "SUCCESS signal with UniqueId i-" in reason]
        self.assertEqual(len(signals), 2)

    def test_creation_fails_for_want_of_signals(self):
        for fault in ({"fail_launch": {"Nodes": "no capacity"}}, {"no_signal": ["Nodes"]}, {"no_signal": ["pool/Nodes"]}):
            with self.subTest(fault):
                self.aws.control(signal_timeout=0.3, **fault)
                self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "ROLLBACK_COMPLETE")
                self.assertRegex(self.reason(), self.NOT_ENOUGH.format(2))
                self.assertIn(("Nodes", "DELETE_COMPLETE", ""), self.events())
                self.assertEqual((self.machines(), self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]), ({}, []))
                self.assertEqual(self.delete(), "DELETE_COMPLETE")

    def test_other_groups_start(self):
        self.aws.control(signal_timeout=600, fail_launch={"Others": "no capacity"}, no_signal=["other/Nodes"])
        self.assertEqual(self.run_stack(pool(), "CREATE"), "CREATE_COMPLETE")

    def test_a_machine_that_did_not_live_is_cancelled(self):
        self.aws.control(fail_launch={"Nodes": "Instance became unhealthy while waiting for instance to be in InService state."})
        self.assertEqual(self.run_stack(pool(signals=False), "CREATE"), "CREATE_COMPLETE")
        self.assertEqual((bool(self.activities("Cancelled")), self.activities("Failed")), (True, []))

    def test_without_signals_there_is_no_wait(self):
        self.aws.control(fail_launch={"Nodes": "no capacity"}, launch_interval=0.05)
        self.assertEqual(self.run_stack(pool(signals=False), "CREATE"), "CREATE_COMPLETE")
        self.soon(lambda: len(self.activities("Failed")) > 2)
        self.assertEqual(self.machines(), {})
        self.aws.control()
        self.soon(self.machines)
        self.assertEqual(len(self.activities("Successful")), 1)

    def test_deletion_ends_the_waiting(self):
        self.aws.control(no_signal=["Nodes"], signal_timeout=600)
        stack = self.start(pool(), "CREATE")
        self.soon(self.machines)
        self.cloudformation.delete_stack(StackName="pool")
        self.assertEqual(self.end(stack), "DELETE_COMPLETE")
        # By now its name is gone; its events say what happened.
        self.assertIn(("pool", "DELETE_IN_PROGRESS", "User Initiated"), self.events(stack))
        self.assertEqual((self.machines(), [vpc for vpc in self.ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]), ({}, []))

    def test_deletion_stops_a_creation(self):
        self.aws.control(delay=600)
        stack = self.start(gateways(*(f"Gateway{number}" for number in range(30))), "CREATE")
        self.cloudformation.delete_stack(StackName="pool")
        self.aws.control()
        self.assertEqual(self.end(stack), "DELETE_COMPLETE")
        self.assertIn("Resource creation cancelled", [reason for _, _, reason in self.events(stack)])
        self.assertLess(len(self.events(stack)), 20)

    def test_rolling_update(self):
        self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "CREATE_COMPLETE")
        before = set(self.machines())
        change_set = self.ask(pool("m5.xlarge", count=2))
        self.assertEqual({change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]["Replacement"]
                          for change in change_set["Changes"]}, {"Template": "False", "Nodes": "False"})
        self.assertEqual(self.run_stack(pool("m5.xlarge", count=2)), "UPDATE_COMPLETE")
        self.assertEqual([machine["InstanceType"] for machine in self.machines().values()], ["m5.xlarge"] * 2)
        self.assertEqual(before & set(self.machines()), set())
        self.assertEqual({member["LaunchTemplate"]["Version"] for member in self.group()["Instances"]}, {"2"})

    def test_rolling_update_shrinks_to_what_stays_in_service(self):
        def limited(machine, in_service):
            template = pool(machine, count=2, maximum=5)
            template["Parameters"] = {"InService": {"Type": "Number", "Default": in_service}}
            template["Resources"]["Nodes"]["UpdatePolicy"]["AutoScalingRollingUpdate"]["MinInstancesInService"] = {"Ref": "InService"}
            return template

        self.assertEqual(self.run_stack(limited("m5.large", 1), "CREATE"), "CREATE_COMPLETE")
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=self.group()["AutoScalingGroupName"], DesiredCapacity=4)
        self.assertEqual(self.run_stack(limited("m5.xlarge", 4)), "UPDATE_COMPLETE")
        shrinking = "Temporarily setting autoscaling group MinSize and DesiredCapacity to 2."
        self.assertNotIn(shrinking, [reason for _, _, reason in self.events()])
        self.assertEqual(self.run_stack(limited("m5.2xlarge", 1)), "UPDATE_COMPLETE")
        self.assertIn(shrinking, [reason for _, _, reason in self.events()])
        self.assertEqual((self.group()["DesiredCapacity"], len(self.machines())), (4, 4))
        self.assertEqual(self.run_stack(limited("m5.large", 5)), "UPDATE_ROLLBACK_COMPLETE")

    def test_rollout_by_hand(self):
        self.assertEqual(self.run_stack(pool(count=2, rolling=False), "CREATE"), "CREATE_COMPLETE")
        before = list(self.machines())
        self.assertEqual(self.run_stack(pool("m5.xlarge", count=2, rolling=False)), "UPDATE_COMPLETE")
        self.assertEqual(list(self.machines()), before)
        self.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=before[0], ShouldDecrementDesiredCapacity=False)
        self.assertEqual(sorted(machine["InstanceType"] for machine in self.machines().values()), ["m5.large", "m5.xlarge"])

    def test_rolling_update_without_signals_is_rolled_back(self):
        self.assertEqual(self.run_stack(pool(count=2), "CREATE"), "CREATE_COMPLETE")
        self.aws.control(no_signal=["Nodes"], signal_timeout=0.3)
        self.assertEqual(self.run_stack(pool("m5.xlarge", count=2)), "UPDATE_ROLLBACK_COMPLETE")
        self.assertRegex(self.reason(), self.NOT_ENOUGH.format(1))
        self.assertEqual([machine["InstanceType"] for machine in self.machines().values()], ["m5.large"] * 2)

    def test_update_that_needs_a_machine(self):
        self.assertEqual(self.run_stack(pool(), "CREATE"), "CREATE_COMPLETE")
        self.aws.control(fail_launch={"Nodes": "no capacity"}, signal_timeout=0.3)
        self.assertEqual(self.run_stack(pool(count=2)), "UPDATE_ROLLBACK_COMPLETE")
        self.assertRegex(self.reason(), self.NOT_ENOUGH.format(1))
        self.assertEqual((len(self.machines()), self.group()["DesiredCapacity"]), (1, 1))

    def test_cancelling_ends_the_waiting(self):
        self.assertEqual(self.run_stack(pool(), "CREATE"), "CREATE_COMPLETE")
        self.refused("CancelUpdateStack cannot be called from current stack status", self.cloudformation.cancel_update_stack,
                     StackName="pool")
        self.aws.control(fail_launch={"Nodes": "no capacity"}, signal_timeout=600)
        self.start(pool("m5.xlarge"))
        self.soon(lambda: self.activities("Failed"))
        self.refused(r"Stack \[arn:\S+ cannot be deleted while in status UPDATE_IN_PROGRESS", self.cloudformation.delete_stack,
                     StackName="pool")
        self.cloudformation.cancel_update_stack(StackName="pool")
        self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")
        self.assertIn(("pool", "UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated"), self.events())
        self.assertEqual([machine["InstanceType"] for machine in self.machines().values()], ["m5.large"])

    def test_others_are_answered_meanwhile(self):
        self.aws.control(no_signal=["Nodes"], signal_timeout=6000)
        self.start(pool(), "CREATE")
        self.soon(self.machines)
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        self.aws.control()
        self.assertEqual(self.end(), "CREATE_COMPLETE")

    def test_one_stack_is_held_and_others_are_not(self):
        self.aws.control(hold=["pool"])
        self.start(gateways("One"), "CREATE")
        self.assertEqual(self.run_stack(gateways("One"), "CREATE", "other"), "CREATE_COMPLETE")
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        self.aws.control()
        self.assertEqual(self.end(), "CREATE_COMPLETE")


class RealMachines(StackCase):
    """Another program boots them: the stand-in says what there is to boot, and waits for their own signals."""

    def signal(self, status, instance_id):
        self.cloudformation.signal_resource(StackName="pool", LogicalResourceId="Nodes", UniqueId=instance_id, Status=status)

    def setUp(self):
        super().setUp()
        self.aws.control(real_machines=True, signal_timeout=600)

    def test_creation_ends_with_the_last_signal(self):
        self.start(pool(count=2), "CREATE")
        first, second = self.soon(lambda: len(self.machines()) == 2 and sorted(self.machines()))
        self.signal("SUCCESS", first)
        self.signal("SUCCESS", first)
        self.assertEqual(self.status(), "CREATE_IN_PROGRESS")
        self.signal("SUCCESS", second)
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.refused("is in CREATE_COMPLETE state and cannot be signaled", self.cloudformation.signal_resource,
                     StackName="pool", LogicalResourceId="Nodes", UniqueId=first, Status="SUCCESS")

    def test_a_failure_ends_the_waiting(self):
        self.start(pool(), "CREATE")
        [machine] = self.soon(self.machines)
        self.signal("FAILURE", machine)
        self.assertEqual(self.end(), "ROLLBACK_COMPLETE")
        self.assertTrue(any("Received 1 FAILURE signal(s) out of 1." in reason for _, _, reason in self.events()))

    def test_the_site_says_what_to_boot(self):
        self.start(pool(), "CREATE")
        [machine] = self.soon(self.machines)
        [told] = self.site()["machines"]
        instance = self.ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]
        self.assertEqual((told["id"], told["state"], told["address"], told["name"]),
                         (machine, "running", instance["PrivateIpAddress"], instance["PrivateDnsName"]))
        self.assertEqual(told["tags"]["infra:cluster"], "mine")
        self.signal("SUCCESS", machine)
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.ec2.terminate_instances(InstanceIds=[machine])
        states = {told["id"]: told["state"] for told in self.site()["machines"]}
        self.assertEqual((states.pop(machine), list(states.values())), ("terminated", ["running"]), "its group starts another")


if __name__ == "__main__":
    unittest.main()
