"""What programs of the first generation, and today's, read from their environment: read here as they read it, for every pod."""

import ast
import functools
import unittest

from rendering import (
    INDEX_FIELD, claim_path, container_of, environment_of, host_names, names, parse_json, place_on_claim, render, role_of, variables_of,
)

SEED_NAMES = {
    "JOB_NAME", "JOB_PATH", "JOB_NAMESPACE", "TRAIN_CONFIG_DIR", "CONF_PADDLE_NIC", "CONF_PADDLE_PORT", "CONF_PADDLE_PORTS_NUM",
    "CONF_PADDLE_PORTS_NUM_SPARSE", "CONF_PADDLE_GRADIENT_NUM",
}


def every_pod(job):
    for training in job.training:
        container = container_of(training)
        for index in range(training["spec"]["completions"]):
            yield training, index, environment_of(container, index, namespace=training["metadata"]["namespace"])


class SeedPaddle:
    """start.sh and start_paddle.py of the first generation, as far as they read their environment. A missing name ends them."""

    def __init__(self, environment):
        self.directory = environment["JOB_PATH"] + "/" + environment["JOB_NAME"]
        self.configuration = self.directory + "/" + environment["TRAIN_CONFIG_DIR"]
        self.output = self.directory + "/output"
        self.api_path = "/api/v1/namespaces/" + environment["JOB_NAMESPACE"] + "/pods?labelSelector=job-name=" + environment["JOB_NAME"]
        self.server_flags = (
            f" --port={environment['CONF_PADDLE_PORT']} --ports_num={environment['CONF_PADDLE_PORTS_NUM']}"
            f" --ports_num_for_sparse={environment['CONF_PADDLE_PORTS_NUM_SPARSE']} --nics={environment['CONF_PADDLE_NIC']}"
            f" --num_gradient_servers={environment['CONF_PADDLE_GRADIENT_NUM']}"
        )
        # Under `set -u`, so that a name that is not there ends the container at once.
        self.trainer_count = environment["TRAINER_COUNT"]

    def shard(self, trainer):
        return f"{self.directory}/{trainer}/data"


class PaddleV0(unittest.TestCase):
    def test_the_first_generations_scripts_find_all_they_read(self):
        for name in ("paddle-v0", "seed-image", "paddle-v0-ports", "paddle-v0-single"):
            job = render(name)
            for training, index, environment in every_pod(job):
                self.assertLessEqual(SEED_NAMES | {"TRAINER_COUNT"}, set(environment), name)
                seed = SeedPaddle(environment)
                mount = claim_path(container_of(training))
                self.assertTrue(seed.directory.startswith(mount + "/"), f"{name}: {seed.directory} is not on the claim")
                self.assertNotIn("//", seed.directory)
                self.assertEqual(mount, "/home/jobpath")
                self.assertIn(f"--num_gradient_servers={training['spec']['completions']}", seed.server_flags)
                for part in seed.server_flags.split():
                    self.assertRegex(part, r"^--\w+=\w+$")
                self.assertGreater(int(seed.trainer_count), 0)

    def test_the_values_of_the_seeds_come_out_again(self):
        job = render("seed-image")
        for training, _, environment in every_pod(job):
            wanted = {
                "JOB_NAME": "paddle-cluster-job-trainer-0", "JOB_PATH": "/home/jobpath", "JOB_NAMESPACE": "default",
                "TRAIN_CONFIG_DIR": "recommendation", "CONF_PADDLE_NIC": "eth0", "CONF_PADDLE_PORT": "7164",
                "CONF_PADDLE_PORTS_NUM": "2", "CONF_PADDLE_PORTS_NUM_SPARSE": "2", "CONF_PADDLE_GRADIENT_NUM": "3",
                "TRAINER_COUNT": "3",
            }
            self.assertEqual({name: environment[name] for name in wanted}, wanted)
            seed = SeedPaddle(environment)
            on_claim = functools.partial(place_on_claim, container_of(training))
            self.assertEqual(on_claim(seed.configuration), "paddle-cluster-job/recommendation")
            self.assertEqual(on_claim(seed.output), on_claim(environment["INFRA_OUTPUT_DIR"]))

    def test_a_seed_image_lists_exactly_its_own_pods(self):
        job = render("seed-image")
        (training,) = job.training
        (_, _, environment), *_ = every_pod(job)
        # The Job controller labels pods with the name of their Job.
        self.assertTrue(SeedPaddle(environment).api_path.endswith(f"job-name={training['metadata']['name']}"))
        self.assertIn(f"/{training['metadata']['namespace']}/", SeedPaddle(environment).api_path)
        (role,) = job.of_kind("Role")
        self.assertEqual(role["rules"], [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])
        self.assertEqual(container_of(training)["command"], ["/bin/bash", "-c", "/root/start.sh"])
        self.assertEqual(job.set["spec"]["failurePolicy"]["maxRestarts"], 0, "a failed pod stays in its list for ever")

    def test_the_import_leaves_each_part_where_its_trainer_looks(self):
        for name in ("paddle-v0", "seed-image"):
            job = render(name)
            importer = container_of(job.data)
            out = place_on_claim(importer, variables_of(importer)["OUT_DIR"])
            for training, index, environment in every_pod(job):
                on_claim = functools.partial(place_on_claim, container_of(training))
                self.assertEqual(on_claim(SeedPaddle(environment).shard(index)), f"{out}/{index}/data")
                self.assertEqual(on_claim(environment["INFRA_DATA_DIR"]), f"{out}/{index}/data")

    def test_peers_are_the_pods_in_order(self):
        for name in ("paddle-v0", "paddle-v0-ports"):
            job = render(name)
            (training,) = job.training
            for _, _, environment in every_pod(job):
                self.assertEqual(environment["INFRA_PEERS"].split(","), host_names(training))


class SeedTensorflow(unittest.TestCase):
    def test_pods_know_their_role_and_find_themselves_in_the_cluster(self):
        job = render("tensorflow-seed")
        count = 0
        for training, index, environment in every_pod(job):
            # worker.py unpacks three names; the charts' shell scripts cut out the first and second field.
            role, task, rest = environment["POD_NAME"].split("-", 2)
            self.assertEqual((role, int(task)), (role_of(training), index))
            self.assertEqual(environment["POD_NAME"].split("-")[:2], [role, task])
            self.assertTrue(rest)
            cluster = ast.literal_eval(environment["CLUSTER_CONFIG"])
            self.assertEqual(cluster, parse_json(environment["CLUSTER_CONFIG"]), "shell scripts hand it to jq")
            self.assertEqual({role: len(hosts) for role, hosts in cluster.items()}, {"ps": 2, "worker": 4})
            port = container_of(training)["ports"][0]["containerPort"]
            self.assertEqual(cluster[role][int(task)], f"{host_names(training)[index]}:{port}")
            count += 1
        self.assertEqual(count, 6)

    def test_everybody_is_told_the_same_cluster(self):
        for name in ("tensorflow-seed",):
            told = {environment["CLUSTER_CONFIG"] for _, _, environment in every_pod(render(name))}
            self.assertEqual(len(told), 1)


class Today(unittest.TestCase):
    def test_tf_config_is_json_for_every_pod(self):
        for name, roles in (("tensorflow", {"worker": 2}), ("tensorflow-servers", {"chief": 1, "ps": 1, "worker": 2})):
            for training, index, environment in every_pod(render(name)):
                if "INFRA_TF_CLUSTER" in environment:
                    # Which worker is the chief is said by the launcher: see test_servers.py.
                    self.assertNotIn("TF_CONFIG", environment)
                    self.assertEqual({role: len(hosts) for role, hosts in parse_json(environment["INFRA_TF_CLUSTER"]).items()}, roles)
                    continue
                told = parse_json(environment["TF_CONFIG"])
                self.assertEqual(told["task"], {"type": role_of(training), "index": index})
                self.assertIs(type(told["task"]["index"]), int)
                self.assertEqual({role: len(hosts) for role, hosts in told["cluster"].items()}, roles)
                own = told["cluster"][told["task"]["type"]][index]
                self.assertEqual(own, f"{host_names(training)[index]}:{container_of(training)['ports'][0]['containerPort']}")

    def test_a_single_replica_needs_no_name(self):
        ((_, _, environment),) = every_pod(render("tensorflow-single"))
        told = parse_json(environment["TF_CONFIG"])
        self.assertEqual(told, {"cluster": {"worker": ["127.0.0.1:2222"]}, "task": {"type": "worker", "index": 0}})

    def test_tf_config_would_not_be_json_if_the_index_came_later(self):
        container = container_of(render("tensorflow").training[0])
        first, *others = container["env"]
        late = {**container, "env": [*others, first]}
        with self.assertRaises(ValueError):
            parse_json(environment_of(late, 1)["TF_CONFIG"])

    def test_torchrun_is_told_its_place(self):
        for name, nodes in (("pytorch", 2), ("pytorch-single", 1), ("pytorch-program", 3)):
            for training, index, environment in every_pod(render(name)):
                self.assertEqual((environment["PET_NODE_RANK"], environment["PET_NNODES"]), (str(index), str(nodes)))
                gpus = container_of(training)["resources"].get("limits", {}).get("nvidia.com/gpu", "1")
                self.assertEqual(environment["PET_NPROC_PER_NODE"], gpus)
                first = host_names(training)[0] if nodes > 1 else "127.0.0.1"
                self.assertEqual(environment["PET_MASTER_ADDR"], first)
                self.assertEqual(environment["PET_RDZV_ID"], f"{environment['INFRA_RUN']}-0", "an earlier attempt is taken for this one")
                self.assertEqual(environment["PET_MASTER_PORT"], str(container_of(training)["ports"][0]["containerPort"]))

    def test_programs_without_torchrun_are_told_their_rank(self):
        for training, index, environment in every_pod(render("pytorch-program")):
            self.assertEqual(container_of(training)["command"][-1], "/workspace/train.sh")
            told = {name: environment[name] for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")}
            self.assertEqual(told, {"MASTER_ADDR": host_names(training)[0], "MASTER_PORT": "29500", "RANK": str(index), "WORLD_SIZE": "3"})
        for _, _, environment in every_pod(render("pytorch")):
            self.assertNotIn("RANK", environment, "torchrun's own would be mistaken for it")

    def test_paddles_launcher_is_told_its_place(self):
        for training, index, environment in every_pod(render("paddle")):
            self.assertEqual(environment["PADDLE_TRAINER_ID"], str(index))
            self.assertEqual(environment["PADDLE_NNODES"], "2")
            self.assertEqual(environment["PADDLE_NPROC_PER_NODE"], "4")
            self.assertEqual(environment["INFRA_MASTER_HOST"], host_names(training)[0])
            self.assertEqual(environment["PADDLE_LOG_DIR"], f"{environment['INFRA_OUTPUT_DIR']}/node_{index}")
            self.assertEqual(environment["PADDLE_JOB_ID"], f"{environment['INFRA_RUN']}-0", "an earlier attempt is taken for this one")
            # It starts its store only where the master's address is letter by letter its own; the launch script puts it in.
            self.assertNotIn("PADDLE_MASTER", environment)

    def test_every_launcher_knows_its_group(self):
        for name in names():
            job = render(name)
            size = sum(training["spec"]["completions"] for training in job.training)
            for training, _, environment in every_pod(job):
                told = [environment[f"INFRA_{word}"] for word in ("ROLE", "REPLICAS", "GROUP_SIZE", "ATTEMPT", "GRACE")]
                count, grace = training["spec"]["completions"], training["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
                self.assertEqual(told, [role_of(training), str(count), str(size), "0", str(grace)], name)
                first = training["spec"].get("successPolicy") == {"rules": [{"succeededIndexes": "0"}]}
                self.assertEqual(environment["INFRA_SUCCESS"] == "first" and count > 1 and role_of(training) != "ps", first, name)

    def test_a_program_finds_directories_of_its_run_where_it_expects_them(self):
        ((training, _, environment),) = every_pod(render("program"))
        container = container_of(training)
        self.assertEqual(container["workingDir"], "/root/paddle/demo/quick_start")
        output = place_on_claim(container, "/root/paddle/demo/quick_start/output")
        self.assertEqual(output, place_on_claim(container, environment["INFRA_OUTPUT_DIR"]))
        (prepare,) = training["spec"]["template"]["spec"]["initContainers"]
        self.assertEqual(variables_of(prepare)["INFRA_MOUNTS"], "output")
        self.assertEqual(prepare["securityContext"]["runAsUser"], 0, "images of other users cannot create directories")

    def test_code_is_read_where_the_program_starts_and_cannot_be_written(self):
        for training, _, environment in every_pod(render("code")):
            container = container_of(training)
            self.assertEqual((container["workingDir"], environment["INFRA_CODE_DIR"]), ("/mnt/code", "/mnt/code"))
            (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == "/mnt/code"]
            self.assertTrue(mount["readOnly"])
            self.assertRegex(mount["subPath"], "^code/[0-9a-f]{32}$")
            # What is mounted in it is another directory, of the run.
            self.assertEqual(place_on_claim(container, "/mnt/code/output"), place_on_claim(container, environment["INFRA_OUTPUT_DIR"]))
            (prepare,) = training["spec"]["template"]["spec"]["initContainers"]
            self.assertEqual(variables_of(prepare)["INFRA_CODE_ON_CLAIM"], f"/mnt/training/{mount['subPath']}")

    def test_nothing_is_left_unexpanded(self):
        for name in names():
            for training, _, environment in every_pod(render(name)):
                self.assertEqual([key for key, text in environment.items() if "$(" in text], [], name)
                self.assertEqual(container_of(training)["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], INDEX_FIELD)


if __name__ == "__main__":
    unittest.main()
