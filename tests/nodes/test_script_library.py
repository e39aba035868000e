"""What all boot scripts share: messages, retries, settings, signed calls, and the signal to CloudFormation."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from node_case import INSTANCE, Node  # noqa: E402


class Library(Node):
    def test_a_reason_is_one_line_on_the_console(self):
        code, _, errors = self.run_bash("say $'two\\nlines'")
        self.assertEqual((code, errors), (0, "infra: two lines\n"))
        self.assertEqual(self.console_lines(), ["infra: two lines"])

    def test_a_console_that_cannot_be_written_is_no_failure(self):
        code, _, errors = self.run_bash("say hello", INFRA_CONSOLE=str(self.folder / "none/console"))
        self.assertEqual((code, errors), (0, "infra: hello\n"))

    def test_settings_are_read_and_not_run(self):
        self.write("settings", f"A_ONE=$(touch {self.folder}/run)\nA_TWO=x y=z\n# B=1\nnot a setting\nPATH=/nowhere\nA_LAST=end")
        show = 'printf "%s|" "$A_ONE" "$A_TWO" "$A_LAST" "${B-unset}"; ls /dev/null'
        code, output, errors = self.run_bash(f'read_settings "$INFRA_ROOT/settings"; {show}')
        self.assertEqual(code, 0, errors)
        self.assertEqual(output, f"$(touch {self.folder}/run)|x y=z|end|unset|/dev/null\n")
        self.assertFalse((self.folder / "run").exists())

    def test_waiting_has_an_end_and_a_reason(self):
        code, output, errors = self.run_bash('no() { reason="still no"; return 1; }; retry_until 1 "the moon" no || echo "$? $reason"')
        self.assertEqual((code, output), (0, "1 the moon: not within 1 s; last: still no\n"))
        self.assertEqual(errors.count("waiting for the moon: still no"), 1, "the same reason is said once")

    def test_a_permanent_failure_ends_at_once(self):
        never = "tries=0; no() { tries=$((tries + 1)); reason=never; return 3; }"
        code, output, _ = self.run_bash(f'{never}; retry_until 60 x no || echo "$? $reason $tries"')
        self.assertEqual((code, output), (0, "3 never 1\n"))

    def test_pauses_grow_and_have_a_limit(self):
        self.stub("sleep", 'exec /bin/sleep 0')
        program = 'tries=0; no() { tries=$((tries + 1)); reason=$tries; ((tries == 9)); }; retry_until 600 x no'
        self.assertEqual(self.run_bash(program, INFRA_BACKOFF_MILLISECONDS="1000")[0], 0)
        pauses = [float(call[0]) for call in self.arguments_of("sleep")]
        for pause, longest in zip(pauses, [1, 2, 4, 8, 15, 15, 15, 15], strict=True):
            self.assertTrue(longest / 2 <= pause <= longest, pauses)
        self.assertGreater(len(set(pauses[4:])), 1, "machines that started together must not ask together")

    def test_metadata_that_is_late_is_waited_for(self):
        self.aws.script("imds:meta-data/instance-id", "error", "missing", "ok")
        self.assertEqual(self.run_bash("imds_value meta-data/instance-id")[:2], (0, INSTANCE))

    def test_real_hosts_of_both_partitions(self):
        program = 'for e in ec2 cloudformation s3; do ${e}_endpoint; echo; done'
        bare = {name: "" for name in self.aws.environment()}
        hosts = lambda **more: self.run_bash(program, **bare, **more)[1].split()  # noqa: E731
        self.assertEqual(
            hosts(),
            [f"https://{name}.us-west-2.amazonaws.com" for name in ("ec2", "cloudformation", "team-bucket.s3")],
        )
        self.assertEqual(
            hosts(INFRA_REGION="cn-north-1", INFRA_DOMAIN="amazonaws.com.cn", INFRA_BUCKET="a.b")[1:],
            ["https://cloudformation.cn-north-1.amazonaws.com.cn", "https://s3.cn-north-1.amazonaws.com.cn/a.b"],
        )

    def test_words_are_encoded_and_decoded(self):
        self.assertEqual(self.run_bash("url_encode 'a/b c+ü'")[1], "a%2Fb%20c%2B%C3%BC")
        self.assertEqual(self.run_bash("xml_value M '<R><M>a &lt;b&gt; &amp; &quot;c&quot; &amp;lt;</M><M>2</M></R>'")[1], 'a <b> & "c" &lt;')


class Signal(Node):
    EXPECTED = {"StackName": "paddle-control-plane", "LogicalResourceId": "Etcd0", "UniqueId": INSTANCE, "Status": "SUCCESS"}

    def test_success(self):
        self.run_script("signal-stack", "SUCCESS")
        self.assertEqual(self.aws.signals, [self.EXPECTED])

    def test_failure_keeps_the_reason_on_the_console(self):
        self.run_script("signal-stack", "FAILURE", "the disk is gone")
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assertIn("the disk is gone", self.console_lines()[-1])

    def test_outside_an_operation_is_success(self):
        for text in ("is in CREATE_COMPLETE state and cannot be signaled", "is in UPDATE_COMPLETE state and can not be signaled"):
            self.aws.script("cloudformation:SignalResource", (400, "ValidationError", f"Stack arn:aws:…:stack/paddle {text}"))
            self.assertIn("in no operation", self.run_script("signal-stack", "SUCCESS"))
        self.assertEqual(self.aws.count("cloudformation:SignalResource"), 2)

    def test_another_validation_error_is_not(self):
        self.aws.script("cloudformation:SignalResource", (400, "ValidationError", "Stack paddle does not exist"))
        self.assertIn("ValidationError: Stack paddle does not exist", self.run_script("signal-stack", "SUCCESS", expect=1))

    def test_trouble_that_passes(self):
        self.aws.script("cloudformation:SignalResource", "throttle", "error", "cut", "throttle")
        self.run_script("signal-stack", "SUCCESS")
        self.assertEqual(self.aws.count("cloudformation:SignalResource"), 5)
        self.assertEqual(self.aws.signals[-1], self.EXPECTED)

    def test_an_answer_that_never_comes_is_not_waited_for(self):
        self.aws.script("cloudformation:SignalResource", "hang")
        self.run_script("signal-stack", "SUCCESS", INFRA_CALL_SECONDS="1")
        self.assertEqual(self.signals(), ["SUCCESS"])

    def test_refused_at_once(self):
        for answer in ("denied", (403, "ExpiredToken", "The security token included in the request is expired")):
            self.aws.script("cloudformation:SignalResource", answer)
            words = self.run_script("signal-stack", "SUCCESS", expect=1)
            self.assertRegex(words, "cloudformation:SignalResource: (AccessDenied|ExpiredToken): ")
        self.assertEqual(self.aws.count("cloudformation:SignalResource"), 2)

    def test_wrong_arguments(self):
        self.run_script("signal-stack", "PERHAPS", expect=2)
        self.assertEqual(self.aws.calls, [])

    def test_a_missing_setting_is_named(self):
        self.write("etc/infra/stack.env", "INFRA_REGION=us-west-2\nINFRA_DOMAIN=amazonaws.com\nINFRA_STACK=x\n")
        self.assertIn("INFRA_RESOURCE is not set", self.run_script("signal-stack", "SUCCESS", expect=1))

    def test_the_watch_on_arguments_sees_curl(self):
        self.run_script("signal-stack", "SUCCESS")
        self.assertTrue(any("--aws-sigv4" in call for call in self.arguments_of("curl")))


if __name__ == "__main__":
    unittest.main()
