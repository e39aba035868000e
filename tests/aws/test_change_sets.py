"""Change sets of the stand-in for AWS: what they replace, what they refuse, and the checks that fail."""

import json
import secrets
import unittest

from account_case import REGION, setUpModule  # noqa: F401
from stack_case import StackCase, gateways


class ChangeSets(StackCase):
    def replacement(self, before, after, logical_id):
        self.assertEqual(self.run_stack(before, "CREATE"), "CREATE_COMPLETE", self.events())
        return next(change["ResourceChange"]["Replacement"] for change in self.ask(after)["Changes"]
                    if change["ResourceChange"]["LogicalResourceId"] == logical_id)

    def role(self, **properties):
        trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"},
                                                         "Action": "sts:AssumeRole"}]}
        return {"Resources": {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust} | properties}}}

    def system(self, **properties):
        return {"Resources": {"Files": {"Type": "AWS::EFS::FileSystem", "Properties": properties}}}

    def test_replacement_as_the_schemas_say(self):
        self.assertEqual(self.replacement(self.system(ThroughputMode="bursting"), self.system(
            ThroughputMode="bursting", PerformanceMode="maxIO"), "Files"), "True")

    def test_change_in_place(self):
        self.assertEqual(self.replacement(self.system(ThroughputMode="bursting"), self.system(ThroughputMode="elastic"), "Files"),
                         "False")

    def test_size_of_template(self):
        long = gateways("One") | {"Metadata": {"Text": "x" * 51200}}
        self.refused("1 validation error detected: .* at 'templateBody' failed to satisfy constraint: "
                     "Member must have length less than or equal to 51200", self.ask, template=long, kind="CREATE")
        self.s3.create_bucket(Bucket=f"templates-{self.account}", CreateBucketConfiguration={"LocationConstraint": REGION})
        self.s3.put_object(Bucket=f"templates-{self.account}", Key="a/t.json", Body=json.dumps(long).encode())
        made = self.cloudformation.create_change_set(StackName="pool", ChangeSetName="c", ChangeSetType="CREATE",
                                                     TemplateURL=f"{self.aws.url}/templates-{self.account}/a/t.json")
        self.assertEqual(self.cloudformation.describe_change_set(ChangeSetName=made["Id"])["Status"], "CREATE_COMPLETE")

    def test_version_of_template(self):
        bucket = f"versions-{self.account}"
        self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        older, newer = (self.s3.put_object(Bucket=bucket, Key="t.json", Body=json.dumps(gateways(name)).encode())["VersionId"]
                        for name in ("Older", "Newer"))

        def template(more):
            made = self.cloudformation.create_change_set(
                StackName="versions", ChangeSetName=f"c{secrets.token_hex(4)}", ChangeSetType="CREATE",
                TemplateURL=f"{self.aws.url}/{bucket}/t.json{more}")
            return json.dumps(self.cloudformation.get_template(StackName="versions", ChangeSetName=made["Id"])["TemplateBody"])

        self.assertIn("Older", template(f"?versionId={older}"))
        self.assertIn("Newer", template(f"?versionId={newer}"))
        self.assertIn("Newer", template(""))
        self.refused("The specified version does not exist", template, more=f"?versionId={'0' * 32}")

    def test_cost(self):
        answer = self.cloudformation.estimate_template_cost(TemplateBody=json.dumps(gateways("One")))
        self.assertEqual(answer["Url"], "https://calculator.aws/#/estimate?key=test")

    def test_outputs_alone(self):
        outputs = lambda value: gateways("One") | {"Outputs": {"Said": {"Value": value}}}
        said = lambda: self.cloudformation.describe_stacks(StackName="pool")["Stacks"][0]["Outputs"][0]["OutputValue"]
        self.start(outputs("before"), "CREATE")
        self.assertEqual((self.end(), said()), ("CREATE_COMPLETE", "before"))
        same = self.ask(outputs("before"))
        self.assertEqual((same["Status"], "didn't contain changes" in same["StatusReason"]), ("FAILED", True))
        other = self.ask(outputs("after"))
        self.assertEqual((other["Status"], other["ExecutionStatus"], other["Changes"]), ("CREATE_COMPLETE", "AVAILABLE", []))
        self.cloudformation.execute_change_set(ChangeSetName=other["ChangeSetId"])
        self.assertEqual((self.end(), said()), ("UPDATE_COMPLETE", "after"))

    def test_second_one_of_a_new_stack(self):
        first, second = self.ask(gateways("One"), "CREATE"), self.ask(gateways("One", "Two"), "CREATE")
        self.assertEqual(first["StackId"], second["StackId"])
        self.refused("InsufficientCapabilities", self.ask, template=self.role(), kind="CREATE")
        self.assertEqual(self.status(), "REVIEW_IN_PROGRESS")
        self.refused(r"Stack \[pool\] does not exist", self.ask, template=gateways("One"))
        self.cloudformation.delete_change_set(ChangeSetName=first["ChangeSetId"])
        self.cloudformation.execute_change_set(ChangeSetName=second["ChangeSetId"])
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        self.assertEqual(len(self.cloudformation.describe_stack_resources(StackName="pool")["StackResources"]), 2)

    def test_new_stack_is_deleted(self):
        self.ask(gateways("One"), "CREATE")
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        for name in ("pool", "never"):
            for call in (self.cloudformation.describe_stacks, self.cloudformation.describe_stack_resources,
                         self.cloudformation.list_stack_resources, self.cloudformation.get_template):
                self.refused(f"ValidationError.*Stack with id {name} does not exist", call, StackName=name)
            self.refused(rf"ValidationError.*Stack \[{name}\] does not exist", self.cloudformation.describe_stack_events,
                         StackName=name)

    def test_wrong_status(self):
        stack = self.start(gateways("One"), "CREATE")
        self.end()
        self.refused(r"Stack \[pool\] already exists and cannot be created again", self.ask, template=gateways("Two"),
                     kind="CREATE")
        ready = self.ask(gateways("Two"))
        for status in ("ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS", "DELETE_FAILED", "UPDATE_ROLLBACK_FAILED"):
            self.aws.control(force_status={"pool": status})
            words = f"ValidationError.*Stack:{stack} is in {status} state and can not be updated."
            self.refused(words, self.ask, template=gateways("Two"))
            self.refused(words, self.ask, template=gateways("Two"), kind="CREATE")
            self.refused(words, self.cloudformation.execute_change_set, ChangeSetName=ready["ChangeSetId"])

    def test_requests_that_come_twice(self):
        once = {"StackName": "pool", "ChangeSetName": "c", "ChangeSetType": "CREATE", "ClientToken": "t1",
                "TemplateBody": json.dumps(gateways("One"))}
        made = [self.cloudformation.create_change_set(**once)["Id"] for _ in range(2)]
        self.assertEqual(made[0], made[1])
        self.refused("AlreadyExists", self.cloudformation.create_change_set, **once | {"ClientToken": "t2"})
        for _ in range(2):
            self.cloudformation.execute_change_set(ChangeSetName=made[0], ClientRequestToken="t3")
        self.refused("InvalidChangeSetStatus", self.cloudformation.execute_change_set, ChangeSetName=made[0],
                     ClientRequestToken="t4")
        self.assertEqual(self.end(), "CREATE_COMPLETE")
        stack = self.cloudformation.describe_stacks(StackName="pool")["Stacks"][0]["StackId"]
        self.aws.control(fail_delete={"One": "busy"})
        self.cloudformation.delete_stack(StackName="pool", ClientRequestToken="t5")
        self.assertEqual(self.end(), "DELETE_FAILED")
        self.aws.control(delay=600)
        for token in ("t5", "t6", "t6", "t7"):
            self.cloudformation.delete_stack(StackName="pool", ClientRequestToken=token)
            self.assertEqual(self.status(), "DELETE_FAILED" if token == "t5" else "DELETE_IN_PROGRESS")
        self.aws.control()
        self.assertEqual(self.end(stack), "DELETE_COMPLETE")
        # One that failed, and one that did not.
        deletions = [event for event in self.events(stack) if event[:2] == ("One", "DELETE_IN_PROGRESS")]
        self.assertEqual(len(deletions), 2)


class Checks(StackCase):
    """Of change sets, before they are accepted."""

    def failed(self, change_set, **more):
        pages = self.cloudformation.get_paginator("describe_events").paginate(
            ChangeSetName=change_set["ChangeSetId"], Filters={"FailedEvents": True}, **more)
        return [event for page in pages for event in page["OperationEvents"]]

    def test_new_stack(self):
        self.aws.control(fail_checks={"One": [["PROPERTY_VALIDATION", "Tags/0", "no such key"]]})
        change_set = self.ask(gateways("One", "Two"), "CREATE")
        self.assertEqual((change_set["Status"], change_set["ExecutionStatus"], change_set["Changes"]), ("FAILED", "UNAVAILABLE", []))
        self.assertEqual(change_set["StatusReason"], "The following hook(s)/validation failed: "
                         "[AWS::EarlyValidation::PropertyValidation]. To troubleshoot Early Validation errors, use the "
                         "DescribeEvents API for detailed failure information.")
        event, = self.failed(change_set, StackName=change_set["StackId"])
        told = {key: event[key] for key in ("EventType", "OperationType", "OperationStatus", "LogicalResourceId", "ResourceType",
                                            "ValidationName", "ValidationStatus", "ValidationStatusReason", "ValidationPath",
                                            "ValidationFailureMode", "StackId")}
        self.assertEqual(told, {
            "EventType": "VALIDATION_ERROR", "OperationType": "CREATE_CHANGESET", "OperationStatus": "FAILED",
            "LogicalResourceId": "One", "ResourceType": "AWS::EC2::InternetGateway", "ValidationName": "PROPERTY_VALIDATION",
            "ValidationStatus": "FAILED", "ValidationStatusReason": "no such key",
            "ValidationPath": "/Resources/One/Properties/Tags/0", "ValidationFailureMode": "FAIL", "StackId": change_set["StackId"]})
        every = self.cloudformation.describe_events(ChangeSetName=change_set["ChangeSetId"])["OperationEvents"]
        self.assertEqual([event["OperationStatus"] for event in every], ["FAILED", "IN_PROGRESS"])
        self.refused("One of ChangeSetName", self.cloudformation.describe_events, ChangeSetName=change_set["ChangeSetName"])
        self.delete()
        self.refused("ChangeSetNotFound", self.cloudformation.describe_events, ChangeSetName=change_set["ChangeSetId"])

    def test_several_of_an_update_in_pages(self):
        self.run_stack(gateways("One"), "CREATE")
        self.aws.control(fail_checks={"One": [["PROPERTY_VALIDATION", "", "untouched"]], "pool/Two": [
            ["NAME_CONFLICT_VALIDATION", "", "it exists"], ["PROPERTY_VALIDATION", "Tags", "no list"],
            ["Acme::Ec2::Guard", "", "needs an owner"]]})
        change_set = self.ask(gateways("One", "Two"))
        self.assertIn("[AWS::EarlyValidation::ResourceExistenceCheck, AWS::EarlyValidation::PropertyValidation, Acme::Ec2::Guard]",
                      change_set["StatusReason"])
        events = self.failed(change_set)
        self.assertEqual([event.get("ValidationPath", event.get("HookType")) for event in events],
                         ["Acme::Ec2::Guard", "/Resources/Two/Properties/Tags", "/Resources/Two"])
        self.assertEqual(events[0]["HookStatusReason"], "needs an owner")
        self.aws.control()
        self.assertEqual(self.run_stack(gateways("One", "Two")), "UPDATE_COMPLETE")

    def test_events_that_come_later(self):
        self.aws.control(fail_checks={"One": [["PROPERTY_VALIDATION", "Tags", "no list"]]}, checks_told_after=1)
        change_set = self.ask(gateways("One"), "CREATE")
        self.assertEqual([len(self.failed(change_set)) for _ in range(2)], [0, 1])


if __name__ == "__main__":
    unittest.main()
