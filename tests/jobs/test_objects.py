"""The objects of every kind of job: judged by Kubernetes' schemas, and by the rules that schemas do not know."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

from rendering import (
    FILES, GPU, ROOT, SCRIPT_DIRECTORY, TOOLS, Job, claim_path, container_of, environment_of, infra, names, place_on_claim, render, render_text, role_of, variables_of,
)

CLUSTER = ROOT / "tests/clusters/ha-gpu-efs/cluster.yaml"
RELEASES = ROOT / "src/config/kubernetes_releases"
SERVED = {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "jobset.x-k8s.io/v1alpha2"}
SEED_NAMES = {
    "JOB_NAME", "JOB_PATH", "JOB_NAMESPACE", "TRAIN_CONFIG_DIR", "CONF_PADDLE_NIC", "CONF_PADDLE_PORT", "CONF_PADDLE_PORTS_NUM",
    "CONF_PADDLE_PORTS_NUM_SPARSE", "CONF_PADDLE_GRADIENT_NUM", "TRAINER_COUNT",
}
HOST_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")


def faults_of(job):
    """What schemas do not see: T1 to T11 of the list that the seeds' faults gave."""
    faults = []

    def check(holds, fault):
        if not holds:
            faults.append(fault)

    for entry in job.objects:
        check(entry["apiVersion"] in SERVED, f"{entry['kind']} is of {entry['apiVersion']}")
    keys = [(entry["kind"], entry["metadata"].get("namespace"), entry["metadata"]["name"]) for entry in job.objects]
    check(len(set(keys)) == len(keys), "two objects have one name")
    for name, spec in job.pods:
        text = json.dumps(spec)
        for word in ("hostPath", "hostPort", "hostNetwork", "hostPID", "hostIPC", "privileged"):
            check(f'"{word}":' not in text, f"{name} has {word}")
        volumes = {volume["name"] for volume in spec.get("volumes", [])}
        for container in spec["containers"] + spec.get("initContainers", []):
            for entry in container.get("env", []):
                check(isinstance(entry.get("value", ""), str), f"{name}: {entry['name']} is not a text")
            check({mount["name"] for mount in container["volumeMounts"]} <= volumes, f"{name} mounts what is not there")
            repeated = [entry["name"] for entry in container.get("env", [])]
            check(len(set(repeated)) == len(repeated), f"{name} has a variable twice")
            resources = container.get("resources", {})
            asked, most = (resources.get(part, {}).get(GPU) for part in ("requests", "limits"))
            check(asked == most, f"{name} asks for {asked} GPUs and may use {most}")
            check("alpha.kubernetes.io/nvidia-gpu" not in text, f"{name} asks for GPUs by their old name")
    claims = {
        volume["persistentVolumeClaim"]["claimName"] for _, spec in job.pods for volume in spec["volumes"] if "persistentVolumeClaim" in volume
    }
    check(len(claims) == 1, f"pods use {len(claims)} claims")
    faults.extend(faults_of_set(job.set))
    for training in job.training:
        faults.extend(faults_of_training(job, training))
    return faults


def faults_of_set(job_set):
    """What JobSet takes for granted when its webhooks are not there to refuse."""
    faults = []

    def check(holds, fault):
        if not holds:
            faults.append(fault)

    spec = job_set["spec"]
    roles = [entry["name"] for entry in spec["replicatedJobs"]]
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": job_set["metadata"]["name"]}
    check(spec["network"] == network, "its pods have no names, or not while they wait")
    check(set(spec["successPolicy"]["targetReplicatedJobs"]) <= set(roles), "its success depends on a role that it does not have")
    check(spec["successPolicy"]["targetReplicatedJobs"] != ["ps"], "its success depends on servers, which never end")
    check(all((entry["replicas"], entry["groupName"]) == (1, "default") for entry in spec["replicatedJobs"]), "it lacks defaults")
    policy = spec["failurePolicy"]
    check(policy["restartStrategy"] == "BlockingRecreate", "two attempts may run beside each other")
    check([rule["action"] for rule in policy["rules"]] == [
        "FailJobSet", "RestartJobSetAndIgnoreMaxRestarts", "FailJobSet", "RestartJobSet",
    ], "its failure policy is another")
    return faults


def faults_of_training(job, training):
    faults = []

    def check(holds, fault):
        if not holds:
            faults.append(f"{training['metadata']['name']}: {fault}")

    spec, container = training["spec"], container_of(training)
    count = spec["completions"]
    variables = variables_of(container)
    check(spec["completionMode"] == "Indexed" and spec["parallelism"] == count, "its pods are not numbered, or not all there at once")
    check(spec["template"]["spec"]["restartPolicy"] == "Never", "a failure policy goes with restartPolicy Never")
    check(spec["backoffLimit"] == 0, "a pod is restarted alone")
    check(spec["podReplacementPolicy"] == "Failed", "two pods may have one number")
    actions = {rule["action"] for rule in spec["podFailurePolicy"]["rules"]}
    check(actions == {"FailJob"}, f"its failure policy does {actions}")
    check(container["env"][0]["name"] == "JOB_COMPLETION_INDEX", "the index comes after variables that need it")
    check(HOST_NAME.match(f"{training['metadata']['name']}-{count - 1}-xxxxx"), "the name of its last pod is no host name")
    if role_of(training) == "ps":
        check(GPU not in json.dumps(container["resources"]), "a parameter server has GPUs")
    if "CONF_PADDLE_PORT" in variables:
        check(SEED_NAMES <= set(variables), f"it lacks {sorted(SEED_NAMES - set(variables))}")
        check(variables["CONF_PADDLE_GRADIENT_NUM"] == str(count), "CONF_PADDLE_GRADIENT_NUM is not the number of trainers")
        first = int(variables["CONF_PADDLE_PORT"])
        last = first + int(variables["CONF_PADDLE_PORTS_NUM"]) + int(variables["CONF_PADDLE_PORTS_NUM_SPARSE"])
        check([port["containerPort"] for port in container["ports"]] == list(range(first, last)), "its ports are not those it listens on")
    if job.data:
        told = variables_of(container_of(job.data))
        mount = claim_path(container_of(job.data))
        check(told["OUT_DIR"].startswith(mount + "/"), "data is written beside the claim")
        check(mount == claim_path(container), "the import and the training see the claim at different paths")
        if told["DATA_SPLIT"] != "none" and role_of(training) != "ps":
            check(told["SPLIT_COUNT"] == str(count), "there are not as many parts as trainers")
        if "JOB_PATH" in variables:
            directory = place_on_claim(container, f"{variables['JOB_PATH']}/{variables['JOB_NAME']}")
            check(place_on_claim(container_of(job.data), told["OUT_DIR"]) == directory, "data is written where nobody looks")
        (init,) = spec["template"]["spec"]["initContainers"]
        check(variables_of(init)["DATA_STAMP"] == told["DATA_STAMP"], "it waits for another stamp than the import writes")
    return faults


class Objects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-objects-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shutil.copy(CLUSTER, cls.folder)
        cls.jobs = {name: render(name, directory=cls.directory(name)) for name in names()}

    @classmethod
    def directory(cls, name):
        return cls.folder if name == "other-namespace" else None

    def validate(self, text, version):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            command = [TOOLS / "venv/bin/kubernetes-validate", "--strict", "-k", version, file.name]
            return subprocess.run(command, capture_output=True, text=True)

    def test_there_is_a_job_of_every_kind(self):
        frameworks = {yaml.safe_load(path.read_text())["framework"] for path in FILES.glob("*.yaml")}
        self.assertEqual(frameworks, {"paddle-v0", "paddle", "tensorflow-seed", "tensorflow", "pytorch", "program"})
        self.assertGreaterEqual(len(self.jobs), 13)

    def test_every_object_fits_the_oldest_and_the_newest_kubernetes(self):
        minors = sorted(path.stem for path in RELEASES.glob("*.yaml"))
        # A JobSet is no kind of Kubernetes: the Jobs that it creates are judged in its place.
        objects = [entry for job in self.jobs.values() for entry in job.objects + job.training if entry["kind"] != "JobSet"]
        text, count = yaml.safe_dump_all(objects), len(objects)
        for version in {minors[0], minors[-1]}:
            done = self.validate(text, version)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual((done.stdout + done.stderr).count(" passed "), count)
        broken = self.validate(text.replace("completionMode:", "completionsMode:", 1), minors[-1])
        self.assertNotEqual(broken.returncode, 0, "the judge cannot refuse")

    def test_no_job_has_a_fault_of_the_seeds(self):
        for name, job in self.jobs.items():
            self.assertEqual(faults_of(job), [], name)

    def test_every_rule_can_refuse(self):
        """Breaks a good job in one place after another."""

        def container(job):
            return container_of(job.training[-1])

        def variable(job, name, value):
            next(entry for entry in container(job)["env"] if entry["name"] == name)["value"] = value

        def drop(job, name):
            container(job)["env"][:] = [entry for entry in container(job)["env"] if entry["name"] != name]

        spoil = {
            "paddle-v0": [
                lambda job: drop(job, "TRAINER_COUNT"),
                lambda job: variable(job, "TRAINER_COUNT", 3),
                lambda job: variable(job, "CONF_PADDLE_GRADIENT_NUM", "4"),
                lambda job: job.training[0]["spec"].update(parallelism=2),
                lambda job: container_of(job.data)["env"][1].update(value="4"),
                lambda job: container(job)["ports"].pop(),
                lambda job: container(job)["ports"][0].update(containerPort=30001),
                lambda job: container_of(job.data)["env"][0].update(value="/home/work/mfs"),
                lambda job: container_of(job.data)["env"][0].update(value="/home/jobpath/other"),
                lambda job: job.data["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"].update(claimName="other"),
                lambda job: container(job)["resources"]["requests"].update({GPU: "2"}),
                lambda job: container(job)["ports"][0].update(hostPort=30001),
                lambda job: job.training[0]["spec"]["template"]["spec"].update(hostNetwork=True),
                lambda job: job.training[0]["spec"]["template"]["spec"]["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
                lambda job: container(job)["securityContext"].update(privileged=True),
                lambda job: job.objects[0].update(apiVersion="extensions/v1beta1"),
                lambda job: job.training[0]["metadata"].update(name="n" * 56),
                lambda job: job.training[0]["spec"].update(backoffLimit=3),
                lambda job: job.set["spec"]["failurePolicy"].update(restartStrategy="Recreate"),
                lambda job: job.set["spec"]["failurePolicy"]["rules"].pop(0),
                lambda job: job.set["spec"]["successPolicy"].update(targetReplicatedJobs=["ps"]),
                lambda job: job.set["spec"]["replicatedJobs"][0].pop("groupName") and job.set["spec"]["replicatedJobs"][0].update(groupName=""),
                lambda job: job.objects.append(job.objects[0]),
                lambda job: container(job)["env"].append(container(job)["env"].pop(0)),
                lambda job: container(job)["volumeMounts"][1].update(name="jobpath"),
                lambda job: job.set["spec"]["network"].update(subdomain="other"),
                lambda job: job.set["spec"]["network"].update(publishNotReadyAddresses=False),
                lambda job: job.training[0]["spec"]["podFailurePolicy"]["rules"][1].update(action="Ignore"),
            ],
            "tensorflow-seed": [lambda job: container_of(job.role("ps"))["resources"].update(
                requests={GPU: "1"}, limits={GPU: "1"})],
        }
        for name, breaks in spoil.items():
            for number, spoiled in enumerate(breaks):
                job = Job(json.loads(json.dumps(self.jobs[name].objects)))
                spoiled(job)
                self.assertNotEqual(faults_of(job), [], f"{name}: nobody sees break {number}")

    def test_only_the_pods_of_a_seed_image_look_for_data_that_it_does_not_read(self):
        for name, job in self.jobs.items():
            for training in job.training:
                (init,) = training["spec"]["template"]["spec"]["initContainers"]
                self.assertEqual(variables_of(init).get("INFRA_SEED_IMAGE"), "yes" if name == "seed-image" else None, name)

    def test_only_a_seed_image_has_a_token(self):
        for name, job in self.jobs.items():
            seed = name == "seed-image"
            self.assertEqual(bool(job.of_kind("ServiceAccount")), seed)
            for entry, spec in job.pods:
                trains = seed and not entry.endswith("-data")
                self.assertIs(spec["automountServiceAccountToken"], trains, f"{name}: {entry}")
                self.assertEqual(spec.get("serviceAccountName"), job.set["metadata"]["name"] if trains else None)

    def test_rendering_twice_gives_the_same_bytes(self):
        for name in names():
            texts = {render_text(FILES / f"{name}.yaml", directory=self.directory(name)) for _ in range(2)}
            self.assertEqual(len(texts), 1, name)

    def test_yaml_and_json_hold_the_same_objects(self):
        for name, job in self.jobs.items():
            told = json.loads(render_text(FILES / f"{name}.yaml", "--output", "json", directory=self.directory(name)))
            self.assertEqual(told["items"], job.objects, name)

    def test_a_run_of_another_name_has_another_directory_and_nothing_else(self):
        usual, other = self.jobs["tensorflow-seed"], render("tensorflow-seed", "--run", "second-try")
        first = environment_of(container_of(usual.training[0]), 0)["INFRA_RUN"]
        for training in other.training:
            environment = environment_of(container_of(training), 0)
            self.assertEqual(environment["INFRA_RUN_DIR"], "/var/tensorflow/dcnn/runs/second-try")
            self.assertEqual(environment["INFRA_OUTPUT_DIR"], "/var/tensorflow/dcnn/runs/second-try/output")
            self.assertEqual(environment["INFRA_MARK_DIR"], "/var/tensorflow/dcnn/runs/second-try/.infra/uid-1")
        digest = "infra.internal/digest"
        self.assertEqual(usual.set["metadata"]["annotations"][digest], other.set["metadata"]["annotations"][digest])
        self.assertEqual(first, usual.set["metadata"]["annotations"][digest])
        text = json.dumps(other.objects).replace("second-try", first)
        self.assertEqual(json.loads(text), usual.objects)

    def test_what_the_file_says_stands_in_the_objects(self):
        job = self.jobs["pytorch"]
        (training,) = job.training
        self.assertEqual(training["spec"]["activeDeadlineSeconds"], 90 * 60)
        self.assertEqual(job.set["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "research")
        self.assertNotIn("kueue.x-k8s.io/queue-name", training["metadata"]["labels"], "one Workload a job")
        self.assertIs(job.set["spec"]["suspend"], True)
        self.assertEqual(job.set["spec"]["failurePolicy"]["maxRestarts"], 5)
        resources = container_of(training)["resources"]
        self.assertEqual(resources["limits"], {"memory": "160Gi", GPU: "4"})
        self.assertEqual(resources["requests"], {"cpu": "24", "memory": "160Gi", GPU: "4"})
        shared = [volume["emptyDir"] for volume in training["spec"]["template"]["spec"]["volumes"] if "emptyDir" in volume]
        self.assertEqual(shared, [{"medium": "Memory", "sizeLimit": "32Gi"}])
        seed = self.jobs["tensorflow-seed"]
        images = {role: container_of(seed.role(role))["image"].rsplit(":", 1)[1] for role in ("ps", "worker")}
        self.assertEqual(images, {"ps": "1.15", "worker": "1.15-gpu"})

    def test_scratch_is_counted_and_only_where_a_machine_has_its_own_drives(self):
        for name, job in self.jobs.items():
            for training in job.training:
                spec, container = training["spec"]["template"]["spec"], container_of(training)
                volumes = [volume["emptyDir"] for volume in spec["volumes"] if volume["name"] == "scratch"]
                mounts = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "scratch"]
                required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
                seen = (volumes, mounts, container["resources"]["requests"].get("ephemeral-storage"), required,
                        variables_of(container).get("INFRA_SCRATCH_DIR"))
                has_some = (name, role_of(training)) == ("scratch", "worker")
                drives = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "infra.internal/scratch-gib", "operator": "Exists"}]}]}
                expected = ([{"sizeLimit": "150Gi"}], ["/mnt/scratch"], "150Gi", drives, "/mnt/scratch")
                self.assertEqual(seen, expected if has_some else ([], [], None, None, None), f"{name}: {role_of(training)}")
        # Pods without GPUs still prefer machines without.
        file = self.folder / "scratch.yaml"
        file.write_text((FILES / "scratch.yaml").read_text().replace("gpus: 1\n", ""))
        job = Job(list(yaml.safe_load_all(render_text(file))))
        affinity = job.role("worker")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        self.assertEqual(sorted(rule.split("During")[0] for rule in affinity), ["preferred", "required"])

    def test_a_tensorboard_ends_by_itself_and_can_move(self):
        job = self.jobs["tensorflow"]
        board = job.named("Job", "mnist-tensorboard")
        container, spec = container_of(board), board["spec"]["template"]["spec"]
        self.assertEqual(container["command"][:3], ["/bin/sh", f"{SCRIPT_DIRECTORY}/tensorboard.sh", "tensorboard"])
        self.assertIn("/mnt/training/mnist/runs", container["command"])
        self.assertIn("tensorboard.sh", job.named("ConfigMap", "mnist-scripts")["data"])
        self.assertTrue(all(mount["readOnly"] for mount in container["volumeMounts"]))
        (training,) = job.training
        variables = variables_of(container)
        self.assertEqual(variables["INFRA_RUN_DIR"], variables_of(container_of(training))["INFRA_RUN_DIR"])
        self.assertEqual(variables["INFRA_RUNS_DIR"], "/mnt/training/mnist/runs")
        self.assertEqual(variables["INFRA_GROUP_NAME"], "mnist.default.svc.cluster.local")
        # On another machine if its own is lost; nothing keeps the autoscaler from moving it.
        self.assertEqual(spec["restartPolicy"], "Never")
        self.assertIn({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                      board["spec"]["podFailurePolicy"]["rules"])
        self.assertNotIn("annotations", board["spec"]["template"]["metadata"])
        self.assertLessEqual(board["spec"]["ttlSecondsAfterFinished"], 86400)

    def test_a_single_replica_needs_no_names(self):
        for name in ("paddle-v0-single", "pytorch-single", "tensorflow-single"):
            job = self.jobs[name]
            self.assertNotIn("svc.cluster.local", json.dumps(job.objects))

    def test_pods_without_gpus_keep_off_machines_that_have_some(self):
        for name, job in self.jobs.items():
            for training in job.training:
                spec, container = training["spec"]["template"]["spec"], container_of(training)
                has_gpus = GPU in container["resources"].get("limits", {})
                stands = any(toleration.get("key") == GPU for toleration in spec.get("tolerations", []))
                self.assertEqual(stands, has_gpus, f"{name}: {role_of(training)}")
                self.assertEqual(variables_of(container).get("NVIDIA_VISIBLE_DEVICES"), None if has_gpus else "void", name)
                preferred = "preferredDuringSchedulingIgnoredDuringExecution" in spec.get("affinity", {}).get("nodeAffinity", {})
                self.assertEqual(preferred, not has_gpus, name)

    def test_helpers_run_wherever_the_job_may(self):
        job = self.jobs["tensorflow-seed"]
        board = job.named("Job", "dcnn-tensorboard")["spec"]["template"]["spec"]
        self.assertEqual([toleration["key"] for toleration in board["tolerations"]], [GPU])
        self.assertIn("nodeAffinity", board["affinity"])
        self.assertEqual(variables_of(board["containers"][0])["NVIDIA_VISIBLE_DEVICES"], "void")
        file = self.folder / "board.yaml"
        file.write_text((FILES / "tensorflow.yaml").read_text() + "pool: gpu\n")
        job = Job(list(yaml.safe_load_all(render_text(file, directory=self.folder))))
        board = job.named("Job", "mnist-tensorboard")["spec"]["template"]["spec"]
        self.assertEqual({toleration["key"] for toleration in board["tolerations"]}, {GPU, "dedicated"})

    def test_a_tensorboard_requests_no_more_memory_than_it_may_have(self):
        for limit, requested in ("256Mi", "256Mi"), ("2Gi", "512Mi"):
            file = self.folder / "board.yaml"
            text = (FILES / "tensorflow.yaml").read_text().replace("tensorboard: true", f"tensorboard: {{memory: {limit}}}")
            file.write_text(text + "pool: gpu\n")
            board = Job(list(yaml.safe_load_all(render_text(file, directory=self.folder)))).named("Job", "mnist-tensorboard")
            resources = board["spec"]["template"]["spec"]["containers"][0]["resources"]
            self.assertEqual((resources["requests"]["memory"], resources["limits"]["memory"]), (requested, limit))

    def test_another_namespace_gets_the_clusters_file_system(self):
        job = self.jobs["other-namespace"]
        volume, claim = job.objects[:2]
        self.assertEqual((volume["kind"], claim["kind"]), ("PersistentVolume", "PersistentVolumeClaim"))
        self.assertEqual(claim["metadata"]["namespace"], "vision")
        self.assertEqual(volume["spec"]["claimRef"]["namespace"], "vision")
        self.assertEqual(claim["spec"]["volumeName"], volume["metadata"]["name"])
        self.assertEqual({volume["spec"]["storageClassName"], claim["spec"]["storageClassName"]}, {""})
        namespaces = {entry["metadata"].get("namespace") for entry in job.objects} - {None}
        self.assertEqual(namespaces, {"vision"})
        (training,) = job.training
        keys = {(taint["key"], taint["effect"]) for taint in training["spec"]["template"]["spec"]["tolerations"]}
        impatient = {(f"node.kubernetes.io/{taint}", "NoExecute") for taint in ("not-ready", "unreachable")}
        self.assertEqual(keys, {(GPU, "NoSchedule"), ("dedicated", "NoSchedule")} | impatient)
        self.assertEqual(training["spec"]["template"]["spec"]["nodeSelector"], {"infra.internal/pool": "gpu"})
        alone = infra("job", "render", "-f", FILES / "other-namespace.yaml")
        self.assertNotIn("PersistentVolume\n", alone.stdout, "without a cluster nothing is known of its file system")


if __name__ == "__main__":
    unittest.main()
