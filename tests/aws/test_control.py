"""How the stand-in for AWS is controlled: settings from a file, and the calls that it counts."""

import pathlib
import re
import unittest
import urllib.error
import urllib.request

from account_case import REGION, AccountCase, new_account, setUpModule  # noqa: F401


class Calls(AccountCase):
    def test_are_counted_by_caller(self):
        before = self.aws.calls().get("Boto3", 0)
        self.sts.get_caller_identity()
        self.sts.get_caller_identity()
        self.assertEqual(self.aws.calls()["Boto3"], before + 2)


class Control(AccountCase):
    def answer(self):
        request = urllib.request.Request(self.aws.url, method="POST", data=b"Action=GetCallerIdentity&Version=2011-06-15")
        with self.assertRaises(urllib.error.HTTPError) as raised:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
        with raised.exception as answer:
            return answer.code, answer.read().decode()

    def test_unknown_key_is_not_passed_over(self):
        self.aws.control(fail_lunch={})
        self.assertEqual(self.answer(), (500, "the control file has an unknown key: fail_lunch"))
        self.assertIn("unknown key: fail_lunch", self.aws.log())

    def test_value_of_wrong_type(self):
        self.aws.control(fail_create="Nodes")
        self.assertEqual(self.answer()[0], 500)

    def test_settings_of_one_account(self):
        def quota(account):
            client = self.aws.client("service-quotas", account, REGION)
            return client.get_service_quota(ServiceCode="ec2", QuotaCode="L-DB2E81BA")["Quota"]["Value"]

        self.aws.control(quotas={"L-DB2E81BA": 1}, accounts={self.account: {"quotas": {"L-DB2E81BA": 0}}})
        self.assertEqual([quota(self.account), quota(new_account())], [0, 1])
        self.aws.control(accounts={self.account: {"fail_lunch": {}}})
        self.assertEqual(self.answer()[0], 500)

    def test_every_key_is_described(self):
        launcher = pathlib.Path(__file__).with_name("launcher.py").read_text()
        keys = re.findall(r'(?m)^    "(\w+)": ', pathlib.Path(__file__).with_name("stand_in").joinpath("control.py").read_text())
        self.assertGreater(len(keys), 15)
        self.assertEqual(keys, [key for key in keys if re.search(rf"(?m)^    {key}  ", launcher)])


if __name__ == "__main__":
    unittest.main()
