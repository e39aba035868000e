"""Capacity blocks on the stand-in for AWS: what EC2 shows of them, and which machines they let start."""

import datetime
import unittest

from account_case import setUpModule  # noqa: F401
from stack_case import StackCase, pool

DAY = datetime.timedelta(days=1)


class Blocks(StackCase):
    """Capacity blocks, and pools in them."""

    def put(self, begins, ends, **more):
        """A call that AWS does not have, signed as any other."""
        now = datetime.datetime.now(datetime.timezone.utc)
        moments = {key: (now + moment).strftime("%Y-%m-%dT%H:%M:%S.000Z") for key, moment in (("StartDate", begins), ("EndDate", ends))}
        client = self.ec2

        def ask(params, **_):
            params["body"].update(moments | more, Action="PutCapacityBlock")

        client.meta.events.register_first("before-call.ec2.CreateCapacityReservation", ask)
        try:
            return client.create_capacity_reservation(
                InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-west-2a",
                InstanceCount=2)["CapacityReservation"]["CapacityReservationId"]
        finally:
            client.meta.events.unregister("before-call.ec2.CreateCapacityReservation", ask)

    def shown(self, block):
        return self.ec2.describe_capacity_reservations(CapacityReservationIds=[block])["CapacityReservations"][0]

    def in_block(self, block, market="capacity-block"):
        template = pool("p5.48xlarge", count=2, signals=False)
        data = template["Resources"]["Template"]["Properties"]["LaunchTemplateData"]
        data["CapacityReservationSpecification"] = {"CapacityReservationTarget": {"CapacityReservationId": block}}
        if market:
            data["InstanceMarketOptions"] = {"MarketType": market}
        return template

    def test_states(self):
        block = self.put(DAY, 2 * DAY)
        found = self.shown(block)
        self.assertEqual((found["State"], found["ReservationType"], found["TotalInstanceCount"]), ("scheduled", "capacity-block", 0))
        self.assertEqual([tag["Value"] for tag in found["Tags"]], ["2"])
        self.assertEqual(round((found["EndDate"] - found["StartDate"]) / DAY), 1)
        self.assertEqual(self.put(-DAY, DAY, CapacityReservationId=block), block)
        found = self.shown(block)
        self.assertEqual((found["State"], found["TotalInstanceCount"], found["AvailableInstanceCount"]), ("active", 2, 2))
        self.put(-2 * DAY, -DAY, CapacityReservationId=block)
        self.assertEqual(self.shown(block)["State"], "expired")
        self.put(DAY, 2 * DAY, CapacityReservationId=block, State="payment-failed")
        self.assertEqual(self.shown(block)["State"], "payment-failed")

    def messages(self):
        activities = self.autoscaling.describe_scaling_activities()["Activities"]
        return {activity.get("StatusMessage", "") for activity in activities if activity["StatusCode"] == "Failed"}

    def test_machines_start_in_an_open_block_alone(self):
        block = self.put(DAY, 2 * DAY)
        self.assertEqual(self.run_stack(self.in_block(block), "CREATE"), "CREATE_COMPLETE")
        self.assertEqual(self.machines(), {})
        self.assertTrue(any("not active yet" in message for message in self.messages()), self.messages())
        self.put(-DAY, DAY, CapacityReservationId=block)
        self.soon(lambda: len(self.machines()) == 2)

    def test_the_market_must_be_that_of_the_reservation(self):
        block = self.put(-DAY, DAY)
        self.assertEqual(self.run_stack(self.in_block(block, market=None), "CREATE"), "CREATE_COMPLETE")
        self.assertEqual(self.machines(), {})
        self.assertTrue(any("market type" in message for message in self.messages()), self.messages())

    def test_a_block_has_no_more_machines_than_were_bought(self):
        block = self.put(-DAY, DAY)
        template = self.in_block(block)
        template["Resources"]["Nodes"]["Properties"]["DesiredCapacity"] = "3"
        self.assertEqual(self.run_stack(template, "CREATE"), "CREATE_COMPLETE")
        self.assertEqual(len(self.machines()), 2)


if __name__ == "__main__":
    unittest.main()
