"""The scripts that unpack and verify what a node downloads: CNI plugins and NVIDIA's container runtime."""

import hashlib
import io
import os
import pathlib
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from node_case import Node  # noqa: E402


class UnpackPlugins(Node):
    def pack(self, **files):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(f"./{name}")
                member.size, member.mode = len(content), 0o755
                tar.addfile(member, io.BytesIO(content))
        self.write("opt/infra/archives/cni-plugins.tgz", archive.getvalue())

    def plugins(self):
        return {path.name: path.read_bytes() for path in (self.root / "opt/cni/bin").iterdir()}

    def test_twice(self):
        self.pack(bridge=b"one", loopback=b"two")
        self.run_script("unpack-cni")
        self.assertEqual(self.plugins(), {"bridge": b"one", "loopback": b"two"})
        self.assertTrue(os.access(self.root / "opt/cni/bin/bridge", os.X_OK))
        self.write("opt/cni/bin/flannel", "theirs")
        self.write("opt/cni/bin/bridge", "broken")
        self.write("opt/cni/unpacking/half", "of a run that was killed")
        self.run_script("unpack-cni")
        self.assertEqual(self.plugins(), {"bridge": b"one", "loopback": b"two", "flannel": b"theirs"})
        self.assertEqual([path.name for path in (self.root / "opt/cni").iterdir()], ["bin"])

    def test_a_broken_archive_changes_nothing(self):
        self.pack(bridge=b"one")
        self.run_script("unpack-cni")
        whole = (self.root / "opt/infra/archives/cni-plugins.tgz").read_bytes()
        self.write("opt/infra/archives/cni-plugins.tgz", whole[: len(whole) // 2])
        self.run_script("unpack-cni", expect=1)
        self.assertEqual(self.plugins(), {"bridge": b"one"})
        self.assertEqual([path.name for path in (self.root / "opt/cni").iterdir()], ["bin"])


class FetchRuntime(Node):
    FILE = "nvidia-runtime-v1.18.1-x86-64.raw"
    IMAGE = b"an extension image"

    def setUp(self):
        super().setUp()
        self.stub("systemctl")
        self.stub("systemd-sysext")
        self.stub("systemd-tmpfiles", 'echo "$(wc -l <"${0%/*}/../systemd-sysext.calls")" >>"${0%/*}/../refreshed"')
        self.environment["INFRA_DOWNLOAD_PROTOCOLS"] = "=http"
        self.sum = hashlib.sha256(self.IMAGE).hexdigest()
        self.aws.files[self.FILE] = self.IMAGE
        self.aws.files["SHA256SUMS"] = f"{'0' * 64}  {self.FILE}.old\n{self.sum}  {self.FILE}\n".encode()
        self.settings()

    def settings(self, more=""):
        self.write(
            "etc/infra/nvidia.env",
            f"""\
            NVIDIA_RUNTIME_URL={self.aws.url}/files/{self.FILE}
            NVIDIA_RUNTIME_SUMS_URL={self.aws.url}/files/SHA256SUMS
            NVIDIA_RUNTIME_FILE={self.FILE}
            {more}
            """,
        )

    def assert_in_place(self):
        link = self.root / "etc/extensions/nvidia-runtime.raw"
        self.assertEqual(link.resolve(), self.root / "opt/extensions/nvidia-runtime" / self.FILE)
        self.assertEqual(link.read_bytes(), self.IMAGE)

    def assert_refused(self, words, needle):
        self.assertIn(needle, words)
        self.assertFalse((self.root / "etc/extensions/nvidia-runtime.raw").is_symlink())
        self.assertEqual(list((self.root / "opt/extensions/nvidia-runtime").glob("*.raw*")), [])
        self.assertEqual(self.arguments_of("systemd-sysext"), [])

    def test_by_the_list_of_sums_and_again(self):
        self.run_script("fetch-nvidia-runtime")
        self.assert_in_place()
        self.run_script("fetch-nvidia-runtime")
        self.assert_in_place()
        self.assertEqual(self.aws.count(f"files:{self.FILE}"), 1, "fetched once")
        self.assertEqual(self.arguments_of("systemd-sysext"), [["refresh"]] * 2)

    def test_the_first_boot_makes_the_files_that_the_second_would(self):
        self.run_script("fetch-nvidia-runtime")
        self.assertEqual(self.arguments_of("systemd-tmpfiles"), [["--create", "--exclude-prefix=/dev"]])
        self.assertEqual((self.folder / "refreshed").read_text(), "1\n", "not before the extension is there")
        self.stub("systemd-tmpfiles", "exit 73")
        self.assertIn("systemd-tmpfiles failed", self.run_script("fetch-nvidia-runtime"))
        self.assert_in_place()

    def test_a_pinned_sum_needs_no_list(self):
        self.settings(f"NVIDIA_RUNTIME_SHA256={self.sum}")
        self.run_script("fetch-nvidia-runtime")
        self.assert_in_place()
        self.assertEqual(self.aws.count("files:SHA256SUMS"), 0)

    def test_another_image_is_refused(self):
        self.aws.files[self.FILE] = b"another"
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1), "does not have the sha256")

    def test_a_pinned_sum_wins_over_the_list(self):
        self.settings(f"NVIDIA_RUNTIME_SHA256={'1' * 64}")
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1), "does not have the sha256")

    def test_a_list_without_it(self):
        self.aws.files["SHA256SUMS"] = f"{self.sum}  other.raw\n".encode()
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1), "no sha256")

    def test_nothing_but_tls(self):
        del self.environment["INFRA_DOWNLOAD_PROTOCOLS"]
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1, INFRA_DEADLINE_SECONDS="0"), "not supported")
        self.assertEqual(self.aws.calls, [])


if __name__ == "__main__":
    unittest.main()
