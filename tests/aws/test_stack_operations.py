"""How operations on stacks end at the stand-in for AWS, and what their events say."""

import json
import unittest

from account_case import days_since, setUpModule  # noqa: F401
from stack_case import StackCase, gateways


class LostEvents(StackCase):
    def statuses(self, logical_id="pool"):
        return [status for name, status, _ in self.events() if name == logical_id]

    def test_never(self):
        self.aws.control(lose_events={"pool": ["CREATE_COMPLETE"]})
        self.assertEqual(self.run_stack(gateways("One"), "CREATE"), "CREATE_COMPLETE")
        self.assertEqual(self.statuses()[0], "CREATE_IN_PROGRESS")
        self.assertEqual(self.statuses("One")[0], "CREATE_COMPLETE")
        self.aws.control()
        self.assertEqual(self.statuses()[0], "CREATE_COMPLETE")

    def test_late(self):
        self.aws.control(late_events={"One": ["CREATE_FAILED"]}, fail_create={"One": "no"})
        self.assertEqual(self.run_stack(gateways("One"), "CREATE"), "ROLLBACK_COMPLETE")
        self.assertNotIn("CREATE_FAILED", self.statuses("One"))
        self.assertIn("CREATE_FAILED", self.statuses("One"))
        self.assertEqual(self.statuses()[0], "ROLLBACK_COMPLETE")


class Ends(StackCase):
    """Of operations that do not go well."""

    def changed(self, colour, *more):
        return gateways("One", "Two", *more, Tags=[{"Key": "colour", "Value": colour}])

    def test_update_is_rolled_back(self):
        self.run_stack(self.changed("red"), "CREATE")
        self.aws.control(fail_update={"Two": "no"})
        self.assertEqual(self.run_stack(self.changed("blue", "Three")), "UPDATE_ROLLBACK_COMPLETE")
        colours = {tag["Value"] for gateway in self.ec2.describe_internet_gateways()["InternetGateways"]
                   for tag in gateway["Tags"] if tag["Key"] == "colour"}
        self.assertEqual(colours, {"red"})

    def test_update_cannot_be_rolled_back(self):
        self.run_stack(self.changed("red"), "CREATE")
        for failed in ("One", "Two"):
            self.aws.control(fail_update={"Two": "no"}, fail_rollback={failed: "stuck"})
            self.assertEqual(self.run_stack(self.changed("blue")), "UPDATE_ROLLBACK_FAILED", failed)
            self.assertIn((failed, "UPDATE_FAILED", "stuck"), self.events())
            self.cloudformation.continue_update_rollback(StackName="pool")
            self.soon(lambda: self.status() == "UPDATE_ROLLBACK_FAILED")
            self.refused("cannot be skipped", self.cloudformation.continue_update_rollback, StackName="pool",
                         ResourcesToSkip=["Three"])
            self.cloudformation.continue_update_rollback(StackName="pool", ResourcesToSkip=[failed])
            self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")
        self.refused("ContinueUpdateRollback cannot be called", self.cloudformation.continue_update_rollback, StackName="pool")

    def test_creation_cannot_be_rolled_back(self):
        self.aws.control(fail_create={"Two": "no"}, fail_delete={"One": "stuck"})
        self.assertEqual(self.run_stack(self.changed("red"), "CREATE"), "ROLLBACK_FAILED")
        self.aws.control()
        self.assertEqual(self.delete(), "DELETE_COMPLETE")

    def test_untouched_resources_are_not_mentioned(self):
        self.run_stack(self.changed("red"), "CREATE")
        self.aws.control(fail_update={"One": "never asked for"})
        self.assertEqual(self.run_stack(self.changed("red", "Three")), "UPDATE_COMPLETE")
        self.assertEqual({name for name, status, _ in self.events() if status.startswith("UPDATE_")}, {"pool", "Three"})

    def test_retained_except_when_created(self):
        def files(policy):
            template = gateways("Two")
            template["Resources"]["Files"] = {"Type": "AWS::EFS::FileSystem", "DeletionPolicy": policy}
            template["Resources"]["Two"]["DependsOn"] = "Files"
            return template

        self.aws.control(fail_create={"Two": "no"})
        asked = {"RetainExceptOnCreate": True}
        for policy, more, left in (("RetainExceptOnCreate", {}, 0), ("Retain", asked, 0), ("Retain", {}, 1)):
            self.assertEqual(self.run_stack(files(policy), "CREATE", **more), "ROLLBACK_COMPLETE")
            self.assertEqual(len(self.efs.describe_file_systems()["FileSystems"]), left, (policy, more))
            self.assertEqual(self.delete(), "DELETE_COMPLETE")

    def test_protection(self):
        self.run_stack(gateways("One"), "CREATE")
        self.cloudformation.update_termination_protection(StackName="pool", EnableTerminationProtection=True)
        self.refused(r"Stack \[.*pool.*\] cannot be deleted while TerminationProtection is enabled",
                     self.cloudformation.delete_stack, StackName="pool")

    def test_policy(self):
        policy = {"Statement": [
            {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*", "Resource": "*",
             "Condition": {"StringEquals": {"ResourceType": ["AWS::EFS::FileSystem", "AWS::EC2::Subnet"]}}}]}

        def template(**properties):
            return {"Resources": gateways("One")["Resources"] | {
                "Files": {"Type": "AWS::EFS::FileSystem", "Properties": properties}}}

        self.run_stack(template(), "CREATE")
        self.cloudformation.set_stack_policy(StackName="pool", StackPolicyBody=json.dumps(policy))
        self.assertEqual(json.loads(self.cloudformation.get_stack_policy(StackName="pool")["StackPolicyBody"]), policy)
        before = self.efs.describe_file_systems()["FileSystems"][0]["FileSystemId"]
        for denied, action in ((template(PerformanceMode="maxIO"), "Replace"), (gateways("One"), "Delete")):
            self.assertEqual(self.run_stack(denied), "UPDATE_ROLLBACK_COMPLETE")
            self.assertTrue([reason for name, status, reason in self.events() if (name, status) == ("Files", "UPDATE_FAILED")
                             and reason.startswith("Action denied by stack policy") and f"[Update:{action}]" in reason])
        self.assertEqual(self.run_stack(template(ThroughputMode="elastic")), "UPDATE_COMPLETE")
        self.assertEqual([system["FileSystemId"] for system in self.efs.describe_file_systems()["FileSystems"]], [before])


class Ages(StackCase):
    def test_of_stacks(self):
        self.run_stack(gateways("One"), "CREATE", "first")
        self.run_stack(gateways("One"), "CREATE", "second")
        self.aws.control(ages={"first": 72})
        found = {stack["StackName"]: stack["CreationTime"] for stack in self.cloudformation.describe_stacks()["Stacks"]}
        self.assertEqual({name: days_since(made.isoformat()) for name, made in found.items()}, {"first": 3, "second": 0})


class Beginnings(StackCase):
    """Statuses that a test begins with."""

    def setUp(self):
        super().setUp()
        self.run_stack(gateways("One"), "CREATE")

    def test_status_moves_on(self):
        self.aws.control(force_status={"pool": "UPDATE_ROLLBACK_FAILED"})
        self.assertEqual([self.status(), self.status()], ["UPDATE_ROLLBACK_FAILED"] * 2)
        self.cloudformation.continue_update_rollback(StackName="pool")
        self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")
        self.aws.control(force_status={"pool": "UPDATE_ROLLBACK_FAILED"})
        self.assertEqual(self.status(), "UPDATE_ROLLBACK_FAILED")

    def test_resources_that_failed(self):
        self.aws.control(force_status={"pool": "UPDATE_ROLLBACK_FAILED"}, fail_rollback={"One": "stuck"})
        self.assertEqual(self.status(), "UPDATE_ROLLBACK_FAILED")
        resource = self.cloudformation.describe_stack_resource(StackName="pool", LogicalResourceId="One")["StackResourceDetail"]
        self.assertEqual(resource["ResourceStatus"], "UPDATE_FAILED")
        self.cloudformation.continue_update_rollback(StackName="pool", ResourcesToSkip=["One"])
        self.assertEqual(self.end(), "UPDATE_ROLLBACK_COMPLETE")

    def test_failure_that_was_not_taken_back(self):
        for status, last in (("UPDATE_FAILED", "UPDATE_ROLLBACK_COMPLETE"), ("CREATE_FAILED", "ROLLBACK_COMPLETE")):
            self.aws.control(force_status={"pool": status})
            self.cloudformation.rollback_stack(StackName="pool")
            self.assertEqual(self.end(), last)
        self.refused("RollbackStack cannot be called", self.cloudformation.rollback_stack, StackName="pool")

    def test_not_again_for_a_new_stack(self):
        self.aws.control(force_status={"pool": "ROLLBACK_COMPLETE"})
        self.assertEqual(self.status(), "ROLLBACK_COMPLETE")
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        self.assertEqual(self.run_stack(gateways("One"), "CREATE"), "CREATE_COMPLETE")

    def test_operation_of_another_process_ends(self):
        self.aws.control(force_status={"pool": "UPDATE_IN_PROGRESS"}, finish_status="UPDATE_COMPLETE", finish_after=600)
        self.assertEqual(self.status(), "UPDATE_IN_PROGRESS")
        self.aws.control()
        self.assertEqual(self.end(), "UPDATE_COMPLETE")
        statuses = [status for name, status, _ in self.events() if name == "pool"]
        self.assertEqual(statuses[:2], ["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS"])


if __name__ == "__main__":
    unittest.main()
