"""Scheduled actions on the stand-in for AWS: what is refused as AWS refuses it, and what happens to groups of stacks."""

import datetime
import unittest
import zoneinfo

from account_case import setUpModule  # noqa: F401
from stack_case import StackCase, pool

SIZES = ("MinSize", "MaxSize", "DesiredCapacity")


def action(recurrence="0 20 * * *", size=0, **more):
    return {"Type": "AWS::AutoScaling::ScheduledAction", "Properties": {
        "AutoScalingGroupName": {"Ref": "Nodes"}, "Recurrence": recurrence, **dict.fromkeys(SIZES, size), **more}}


def scheduled(**named):
    template = pool(count=2)
    template["Resources"] |= named
    return template


class ScheduledActions(StackCase):
    """Auto Scaling by the clock."""

    def actions(self):
        found = self.autoscaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
        return {entry["Recurrence"]: entry for entry in found}

    def put(self, recurrence, name="other", **more):
        self.autoscaling.put_scheduled_update_group_action(
            AutoScalingGroupName=self.group()["AutoScalingGroupName"], ScheduledActionName=name, Recurrence=recurrence,
            **{"DesiredCapacity": 0} | more)

    def run_action(self, recurrence):
        """A call that AWS does not have, signed as any other."""
        client = self.autoscaling

        def ask(params, **_):
            params["body"].update(Action="RunScheduledAction", Recurrence=recurrence)

        client.meta.events.register_first("before-call.auto-scaling.SetDesiredCapacity", ask)
        try:
            client.set_desired_capacity(AutoScalingGroupName=self.group()["AutoScalingGroupName"], DesiredCapacity=0)
        finally:
            client.meta.events.unregister("before-call.auto-scaling.SetDesiredCapacity", ask)

    def sizes(self):
        return [self.group()[key] for key in SIZES]

    def test_life(self):
        night, morning = action(TimeZone="Europe/Berlin"), action("0 8 * * MON-FRI", DesiredCapacity=3, MaxSize=4)
        self.assertEqual(self.run_stack(scheduled(Night=night, Morning=morning), "CREATE"), "CREATE_COMPLETE")
        found = self.actions()
        self.assertEqual([found["0 8 * * MON-FRI"][key] for key in SIZES], [0, 4, 3])
        self.assertEqual(found["0 20 * * *"]["TimeZone"], "Europe/Berlin")
        start = found["0 20 * * *"]["StartTime"]
        self.assertEqual(start.astimezone(zoneinfo.ZoneInfo("Europe/Berlin")).strftime("%H:%M"), "20:00")
        self.assertGreater(start, datetime.datetime.now(datetime.timezone.utc))

        self.run_action("0 20 * * *")
        self.assertEqual(self.sizes(), [0, 0, 0])
        self.assertEqual(self.machines(), {})
        # What the template does not change stays, with other machines and without an action.
        changed = scheduled(Night=night)
        changed["Resources"]["Template"]["Properties"]["LaunchTemplateData"]["InstanceType"] = "m5.xlarge"
        self.assertEqual(self.run_stack(changed), "UPDATE_COMPLETE")
        self.assertEqual((self.sizes(), list(self.actions())), ([0, 0, 0], ["0 20 * * *"]))
        other = scheduled(Night=action("30 20 * * *"))
        self.assertEqual(self.run_stack(other), "UPDATE_COMPLETE")
        self.assertEqual(list(self.actions()), ["30 20 * * *"])
        self.assertEqual(self.delete(), "DELETE_COMPLETE")
        self.assertEqual(self.actions(), {})

    def test_suspended(self):
        self.assertEqual(self.run_stack(scheduled(Night=action()), "CREATE"), "CREATE_COMPLETE")
        self.autoscaling.suspend_processes(AutoScalingGroupName=self.group()["AutoScalingGroupName"],
                                           ScalingProcesses=["ScheduledActions"])
        self.run_action("0 20 * * *")
        self.assertEqual(self.sizes()[2], 2)

    def test_refusals(self):
        self.assertEqual(self.run_stack(scheduled(Night=action()), "CREATE"), "CREATE_COMPLETE")
        for recurrence in ("60 * * * *", "0 24 * * *", "* * * *", "0 0 ? * *", "@daily", "0 5-1 * * *", "0 0 31 2 *"):
            with self.subTest(recurrence):
                self.refused("recurrence string", self.put, recurrence)
        self.refused("timezone", self.put, "0 9 * * *", TimeZone="Europe/Berln")
        self.refused("start time already exists", self.put, "0 20 * * SUN-SAT")
        self.refused("must be between", self.put, "0 9 * * *", MinSize=0, MaxSize=2, DesiredCapacity=3)
        self.put("0 9 * * *", TimeZone="Pacific/Tahiti")
        self.put("0 9 * * *", TimeZone="Pacific/Tahiti", DesiredCapacity=1)
        with self.assertRaises(self.autoscaling.exceptions.ClientError):
            self.autoscaling.delete_scheduled_action(AutoScalingGroupName=self.group()["AutoScalingGroupName"],
                                                     ScheduledActionName="nobody")

    def test_a_stack_with_a_bad_action_fails(self):
        self.assertEqual(self.run_stack(scheduled(Night=action("0 24 * * *")), "CREATE"), "ROLLBACK_COMPLETE")
        self.assertTrue(any("recurrence string" in reason for _, _, reason in self.events()))


if __name__ == "__main__":
    unittest.main()
