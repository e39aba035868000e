"""A control plane without machines: the real etcd, API server, controller manager and scheduler of a minor version, and JobSet.

In come a cluster.yaml and a scratch directory; the cluster is rendered, and the programs run with its flags, keys and manifests as
processes in a network namespace of their own. `infra` and kubectl run beside them. What differs from a controller: the paths of
files, the address of etcd, and that JobSet's manager is no pod, though it has the rights and the settings of one. There are no
machines; pretend_machines.py reports what a kubelet would report.
"""

import contextlib
import os
import re
import subprocess
import sys

from real_cluster import ROOT

from container import network_namespace, run, wait_for
from golden import Config

sys.path.insert(0, str(ROOT / "tests/real_cluster/programs"))

import build  # noqa: E402
import modules  # noqa: E402

from api_calls import KubernetesApi  # noqa: E402

INFRA = ROOT / "target/debug/infra"
# The API server advertises an address, which may not be that of the loopback.
ADDRESS = "10.0.0.10"
API = "127.0.0.1:6443"
ETCD = "https://127.0.0.1:2379"
ADDONS = ("00-rbac", "40-efs", "53-jobset-api", "54-jobset")
PROGRAMS = ("kubernetes", "etcd", "jobset")


class ControlPlane(contextlib.ExitStack):
    def __init__(self, minor, scratch, text):
        super().__init__()
        self.minor, self.scratch, self.text = minor, scratch, text
        self.directory, self.root = scratch / "cluster", scratch / "root"
        self.processes = {}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            build.build(self.minor, only=list(PROGRAMS))
            self.programs = modules.directories(self.minor)
            self.render()
            self.namespace = stack.enter_context(network_namespace(f"plane-{self.minor}"))
            stack.callback(self.stop)
            run("ip", "-n", self.namespace, "address", "add", f"{ADDRESS}/32", "dev", "lo")
            self.start_etcd()
            self.start_kubernetes("kube-apiserver")
            self.wait_for("the API server", lambda: self.kubectl("get", "--raw=/readyz", check=False) == "ok", 300)
            # Not before: they end if the API does not answer for long, and there is no kubelet that would start them again.
            for name in ("kube-controller-manager", "kube-scheduler"):
                self.start_kubernetes(name)
            self.api = stack.enter_context(KubernetesApi(self.namespace, self.directory / "credentials"))
            for name in ADDONS:
                self.apply(self.directory / f"manifests/{name}.yaml")
            self.kubectl("wait", "--for=condition=Established", "crd/jobsets.jobset.x-k8s.io", "--timeout=60s")
            self.start_jobset()
            self.push(stack.pop_all())
        return self

    def render(self):
        self.directory.mkdir()
        (self.directory / "cluster.yaml").write_text(self.text)
        done = subprocess.run([INFRA, "render", "--generate-ca"], cwd=self.directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        for name in ("controller", "etcd-0"):
            for path, file in Config(self.directory / f"userdata/{name}.ign").files.items():
                if file.contents is not None:
                    target = self.root / path.lstrip("/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(file.contents)
        (self.root / "var/log/kubernetes").mkdir(parents=True)

    def start(self, name, *words, environment=None):
        """A program in the namespace; it ends with the tests, however those end."""
        command = [*self.inside("setpriv", "--pdeathsig", "KILL"), *(str(word) for word in words)]
        with (self.scratch / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        for process in reversed(self.processes.values()):
            process.kill()
            process.wait()

    def wait_for(self, what, look, seconds=180):
        """Fails at once if a program has ended."""
        def look_again():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} has ended:\n{(self.scratch / f'{name}.log').read_text()[-4000:]}")
            return look()

        return wait_for(what, look_again, seconds)

    def rendered_flags(self, name):
        """Of a static pod, with the paths and the addresses of this machine."""
        text = (self.root / f"opt/infra/static-pods/{name}.yaml").read_text()
        block = re.search(r"^    command:\n((?:    [-#].*\n)+)", text, re.MULTILINE).group(1)
        program, *flags = re.findall(r"^    - (.*)$", block, re.MULTILINE)
        assert program == name, program
        for flag in flags:
            flag = re.sub(r"=(/etc/kubernetes/|/var/log/|/var/lib/)", rf"={self.root}\1", flag)
            flag = re.sub(r"https://etcd-0\.[a-z.]+:2379", ETCD, flag)
            yield flag.replace("__NODE_IP__", ADDRESS)

    def start_kubernetes(self, name):
        self.start(name, self.programs["kubernetes"] / name, *self.rendered_flags(name))

    def start_etcd(self):
        keys = self.root / "etc/etcd/pki"
        self.start(
            "etcd", self.programs["etcd"] / "etcd", f"--data-dir={self.scratch / 'etcd'}", "--unsafe-no-fsync",
            f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}", "--client-cert-auth",
            f"--cert-file={keys / 'member.pem'}", f"--key-file={keys / 'member-key.pem'}", f"--trusted-ca-file={keys / 'ca.pem'}")

    def start_jobset(self):
        """As the DaemonSet does it: with its configuration, its flags and the token of its account."""
        manifest = (self.directory / "manifests/54-jobset.yaml").read_text()
        block = re.search(r"^  configuration\.yaml: \|\n((?:    .*\n)+)", manifest, re.MULTILINE).group(1)
        certificate = self.scratch / "jobset-certificate"
        certificate.mkdir()
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", 1,
            "-subj", "/CN=jobset", "-keyout", certificate / "tls.key", "-out", certificate / "tls.crt")
        configuration = self.scratch / "jobset.yaml"
        configuration.write_text(re.sub(r"^    ", "", block, flags=re.MULTILINE).replace("/certificate", str(certificate)))
        self.start("jobset", self.programs["jobset"] / "manager", f"--config={configuration}", "--zap-log-level=info",
                   environment={"KUBECONFIG": str(self.kubeconfig_of("jobset", "kube-system"))})

    def kubeconfig_of(self, account, namespace):
        token = self.kubectl("create", "token", account, f"--namespace={namespace}", "--duration=4h").strip()
        path = self.scratch / f"{account}.conf"
        path.write_text(
            f"apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{{name: here, context: {{cluster: here, user: {account}}}}}]\n"
            f"clusters: [{{name: here, cluster: {{server: 'https://{API}', certificate-authority: {self.directory}/credentials/ca.pem}}}}]\n"
            f"users: [{{name: {account}, user: {{token: {token}}}}}]\n")
        path.chmod(0o600)
        return path

    def inside(self, *words):
        return ["ip", "netns", "exec", self.namespace, *(str(word) for word in words)]

    def run(self, *words, input=None, timeout=120):
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.scratch), "NO_COLOR": "1", "INFRA_API_SERVER": API, "INFRA_TEST_TEMPO": "0.1"}
        return subprocess.run(
            self.inside(*words), cwd=self.directory, env=environment, capture_output=True, text=True, timeout=timeout, **stdin)

    def infra(self, *words, expected=(0,)):
        done = self.run(INFRA, *words)
        if done.returncode not in expected:
            raise AssertionError(f"infra {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *words, check=True, input=None):
        done = self.run(self.programs["kubernetes"] / "kubectl", "--kubeconfig", self.root / "etc/kubernetes/admin.conf", *words, input=input)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def apply(self, path):
        """As machines do it."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=infra", f"--filename={path}")

    def use_own_definition(self):
        """Puts JobSet's own definition of its API in the place of ours, as someone does who installs it from elsewhere."""
        self.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={self.programs['jobset'] / 'api.yaml'}")
