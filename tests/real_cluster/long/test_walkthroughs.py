"""The walkthroughs that infra grew out of, on a real cluster, as their pages of docs/runbooks say: from `infra init` to results on disk and `destroy`.

Paddle is a stub, in the place of programs of 2016 that no image has any more; TensorFlow is a program of our own with the walkthrough's
contract (POD_NAME, CLUSTER_CONFIG), which needs no TensorFlow; GPUs are pretended. Machines are smaller than on the pages, and fewer.
"""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from walkthrough import BINARY, FILES, Walkthrough  # noqa: E402

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
TRAINERS = 3
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())"
# Machines have two cores here.
SMALL = "cpu: 250m\n"


class Paddle(Walkthrough):
    """Three trainers on AWS: data that infra divides, and data that is divided already."""

    page = "train-with-paddle.md"
    changes = {'cpu: "2"\n': SMALL, "env:\n": f"env:\n  PATH: /home/jobpath/bin:{SYSTEM_PATH}\n"}
    lines = [f"{number}\n" for number in range(30)]

    def test_the_page(self):
        self.assertIn("healthy", self.follow("infra status").stdout)
        self.publish("registry.example.com/paddle:0.11")
        self.install("paddle")
        self.pack_archive()
        self.assertEqual(self.follow("infra job submit").stdout.count("Succeeded"), TRAINERS)
        self.assertIn("trainer 1 ends", self.follow("infra job logs").stdout)
        self.follow("infra job fetch")
        records = self.check_results("paddle-cluster-job")
        parts = [record["files"]["data/train.txt"].splitlines(keepends=True) for record in records]
        self.assertEqual([len(part) for part in parts], [len(self.lines) // TRAINERS] * TRAINERS)
        self.assertEqual(sum(parts, []), self.lines)
        self.assertEqual({record["files"]["data/dictionary.txt"] for record in records}, {"words\n"})
        self.divide_data()
        self.follow("infra data put data")
        self.assertEqual(self.follow("infra job submit").stdout.count("Succeeded"), TRAINERS)
        logs = self.follow("infra job logs --all").stdout
        for line in ("trainer-0 │ Pass=9 is saved", "trainer-1 │ trainer 1 ends", "trainer-2 │ trainer 2 ends"):
            self.assertIn(line, logs)
        self.follow("infra job fetch")
        records = self.check_results("divided-job")
        self.assertEqual([record["files"]["data/part.txt"] for record in records], [f"part {number}\n" for number in range(TRAINERS)])
        self.follow_to_the_end()

    def pack_archive(self):
        source = self.scratch / "recommendation"
        (source / "recommendation").mkdir(parents=True)
        (source / "recommendation/trainer_config.py").write_text("settings(batch_size=1600)\n")
        (source / "train.txt").write_text("".join(self.lines))
        (source / "dictionary.txt").write_text("words\n")
        with tarfile.open(self.directory / "recommendation.tar.gz", "w:gz") as archive:
            for path in sorted(source.iterdir()):
                archive.add(path, path.name)

    def divide_data(self):
        for number in range(TRAINERS):
            (self.directory / f"data/{number}").mkdir(parents=True)
            (self.directory / f"data/{number}/part.txt").write_text(f"part {number}\n")
        shutil.copytree(self.scratch / "recommendation/recommendation", self.directory / "recommendation")

    def check_results(self, job):
        """What `fetch` brought; returns what each trainer saw."""
        results = self.directory / "results" / job
        passes = sorted(path.name for path in results.glob("pass-*"))
        self.assertEqual(passes, [f"pass-{number:05}" for number in range(10)])
        self.assertEqual((results / "pass-00009/___embedding_0__.w0").read_text(), "settings(batch_size=1600)\n")
        records = [json.loads((results / f"records/train.{number}.json").read_text()) for number in range(TRAINERS)]
        for number, record in enumerate(records):
            self.assertIn("listening", (results / f"node_{number}/server.log").read_text())
            self.assertEqual(record["flags"]["trainer_id"], str(number))
            self.assertEqual(len(record["flags"]["pservers"].split(",")), TRAINERS)
            self.assertIn("trainer_config.py", record["files"])
        return records


class OneMachine(Walkthrough):
    """One pod with any program, which writes where it always did; the script comes as code."""

    page = "run-any-program.md"
    workdir = "workdir: /root/paddle/demo/quick_start\n"
    changes = {'cpu: "4"\n': SMALL, "[bash, ./train.sh]": "[sh, ./train.sh]",
               workdir: f"{workdir}code: quick_start\nenv: {{PATH: '/mnt/training/bin:{SYSTEM_PATH}'}}\n"}

    def test_the_page(self):
        self.follow("infra status")
        self.publish("registry.example.com/paddle:quickstart")
        self.install("paddle")
        (self.directory / "quick_start").mkdir()
        shutil.copy(FILES / "train.sh", self.directory / "quick_start")
        (self.directory / "quick_start/trainer_config.lr.py").write_text("settings(batch_size=128)\n")
        self.assertIn("Succeeded", self.follow("infra job submit").stdout)
        self.assertIn("Pass=14 is saved", self.follow("infra job logs").stdout)
        self.follow("infra job fetch")
        results = self.directory / "results/quick-start"
        self.assertEqual(sorted(path.name for path in results.glob("pass-*")), [f"pass-{number:05}" for number in range(15)])
        self.assertIn("Pass=14 is saved", (results / "train.log").read_text())
        self.assertIn("Succeeded", self.follow("infra job submit --run second").stdout)
        self.assertRegex(self.type("job", "runs").stdout, r"first +complete[^\n]*\nsecond +complete")
        self.follow_to_the_end()


class TensorFlow(Walkthrough):
    """Parameter servers, workers with GPUs, data from the web and a TensorBoard; worker.py comes as code, from the directory of the cluster."""

    page = "train-with-tensorflow.md"
    changes = {
        "instanceType: m5.2xlarge, count: 3": "instanceType: m5.2xlarge, count: 1",
        "count: 1, minCount: 0, maxCount: 16": "count: 2, minCount: 0, maxCount: 16",
        "ps: 8\nworkers: 16\n": f"ps: 2\nworkers: 2\n{SMALL}",
        "memory: 8Gi\n": "memory: 4Gi\ncode: .\n",
        # The suite's images do not trust the suite's authority.
        "https://example.com/": "http://data.example.org/",
        "tensorboard: true": f"tensorboard: {{image: {JOB_IMAGE}, cpu: 100m, memory: 1Gi}}",
        "--index 7": "--index 1",
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source, archive = cls.scratch / "cifar10", cls.scratch / "cifar10.tar.gz"
        source.mkdir()
        (source / "data_batch_1.bin").write_bytes(bytes(3073))
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(source, "cifar10")
        cls.parts.extensions["https://data.example.org/cifar10.tar.gz"] = archive

    def test_the_page(self):
        self.follow("infra status")
        self.assertIn("pretend GPU", self.follow("infra job gpu-check").stdout)
        self.publish("registry.example.com/tf-worker:1.15-gpu", "registry.example.com/tf-worker:1.15")
        self.install("tensorboard")
        shutil.copy(FILES / "worker.py", self.directory)
        # Our own launcher, with a program in the place of TensorBoard.
        launchers = self.directory / "templates/jobs"
        launchers.mkdir(parents=True)
        launcher = (ROOT / "templates/jobs/tensorboard.sh").read_text()
        (launchers / "tensorboard.sh").write_text(f"PATH=/var/tensorflow/bin:$PATH\n{launcher}")
        submitted = self.follow("infra job submit")
        self.assertIn("`infra job tensorboard distributed-cnn` shows its TensorBoard", submitted.stderr)
        self.check_code()
        self.assertIn("step 39, loss 0.0", self.follow("infra job logs --follow").stdout)
        self.assertIn('ps 1 of {"ps": 2, "worker": 2}', self.follow("infra job logs --role ps").stdout)
        # It attaches to the job, and ends when that is complete.
        self.assertIn("Succeeded", self.type("job", "submit").stdout)
        self.check_tensorboard()
        self.follow("infra job fetch")
        for number in range(2):
            result = json.loads((self.directory / f"results/distributed-cnn/worker-{number}.json").read_text())
            self.assertEqual((result["images"], result["directory"]), (["data_batch_1.bin"], "/mnt/code"))
            self.assertEqual([round(value) for value in result["weights"]], [3, 3])
        self.follow_to_the_end()

    def check_code(self):
        """The directory of the cluster was uploaded without its keys."""
        [tree] = [path for path in (self.parts.shared / "code").iterdir() if not path.name.startswith(".")]
        self.assertTrue((tree / "worker.py").exists() and (tree / "cluster.yaml").exists())
        self.assertEqual([name for name in ("credentials", "userdata", "kubeconfig") if (tree / name).exists()], [])

    def check_tensorboard(self):
        command = self.cluster.operators_command("env", f"PATH={self.empty}", BINARY, "job", "tensorboard")
        process = subprocess.Popen(command, cwd=self.directory, env=self.cluster.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()
        page = self.cluster.run(sys.executable, "-c", FETCH, address)
        [run] = (self.parts.shared / "distributed-cnn/runs").iterdir()
        self.assertIn(run.name, page.stdout, page.stderr)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
