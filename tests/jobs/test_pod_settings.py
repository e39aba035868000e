"""Settings of pods that decide what a lost machine costs, how fast GPUs talk, and where images come from."""

import pathlib
import shutil
import tempfile
import unittest

from rendering import FILES, GPU, Job, container_of, names, render, render_text, role_of, variables_of
import yaml

from test_objects import CLUSTER

SOCKETS = {"NCCL_SOCKET_NTHREADS": "2", "NCCL_NSOCKS_PERTHREAD": "8"}


class Settings(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="infra-settings-")))

    def render(self, text):
        file = self.folder / "job.yaml"
        file.write_text(text)
        return Job(list(yaml.safe_load_all(render_text(file, directory=self.folder))))

    def test_every_pod_that_trains_leaves_a_node_that_does_not_answer_after_half_a_minute(self):
        for name in names():
            for training in render(name).training:
                found = {
                    toleration["key"]: (toleration["operator"], toleration["effect"], toleration["tolerationSeconds"])
                    for toleration in training["spec"]["template"]["spec"]["tolerations"] if "tolerationSeconds" in toleration
                }
                impatient = ("Exists", "NoExecute", 30)
                wanted = {f"node.kubernetes.io/{taint}": impatient for taint in ("not-ready", "unreachable")}
                self.assertEqual(found, wanted, f"{name}: {role_of(training)}")

    def test_groups_with_gpus_have_several_sockets_for_each_connection(self):
        seen = set()
        for name in names():
            job = render(name)
            group = sum(training["spec"]["completions"] for training in job.training)
            for training in job.training:
                container = container_of(training)
                has_gpus = GPU in container["resources"].get("limits", {})
                wanted = SOCKETS if has_gpus and group > 1 else {}
                variables = variables_of(container)
                self.assertEqual({key: variables[key] for key in SOCKETS if key in variables}, wanted, f"{name}: {role_of(training)}")
                seen.add(bool(wanted))
        self.assertEqual(seen, {True, False})
        own = self.render((FILES / "pytorch.yaml").read_text() + 'env: {NCCL_NSOCKS_PERTHREAD: "1"}\n')
        self.assertEqual(variables_of(container_of(own.training[0]))["NCCL_NSOCKS_PERTHREAD"], "1")

    def test_a_tensorboard_comes_from_the_mirror(self):
        shutil.copy(CLUSTER, self.folder / "cluster.yaml")
        text = "name: train\nframework: pytorch\nimage: registry.example.com/train:1\nreplicas: 1\ncommand: [python, train.py]\ntensorboard: true\n"
        usual = self.board(self.render(text))
        self.assertTrue(usual.startswith("docker.io/tensorflow/"), usual)
        with (self.folder / "cluster.yaml").open("a") as file:
            file.write("mirrors: {docker.io: 'https://mirror.example.com/hub'}\n")
        self.assertEqual(self.board(self.render(text)), usual.replace("docker.io", "mirror.example.com/hub"))
        # An image that the user names is taken as it is.
        own = text.replace("tensorboard: true", "tensorboard: {image: docker.io/team/board:1}")
        self.assertEqual(self.board(self.render(own)), "docker.io/team/board:1")

    def board(self, job):
        (board,) = [entry for entry in job.of_kind("Job") if role_of(entry) == "tensorboard"]
        return container_of(board)["image"]

    def test_the_bound_on_restarts_is_known_before_the_launcher_starts(self):
        job = self.render((FILES / "pytorch.yaml").read_text() + 'env: {INFRA_MOST_RESTARTS: "9"}\n')
        (prepare,) = job.training[0]["spec"]["template"]["spec"]["initContainers"]
        self.assertEqual(variables_of(prepare)["INFRA_MOST_RESTARTS"], "9")


if __name__ == "__main__":
    unittest.main()
