"""The environment that launchers are tested with is the one that is rendered."""

import unittest

from contract import contract, jobsets, launcher_text, prepare_of, rendered, rendered_objects, table, variables_of
from rendering import SCRIPT_DIRECTORY, names

# Known when a job is submitted, or decided by the file; launchers are tested with other values.
FREE = {"INFRA_DEADLINE", "INFRA_GRACE", "INFRA_JOBSET_UID"}
DIRECTORIES = {"INFRA_RUN_DIR", "INFRA_OUTPUT_DIR", "INFRA_LOG_DIR", "INFRA_MARK_DIR", "INFRA_ATTEMPT"}


class Rendered(unittest.TestCase):
    def contracts(self):
        if rendered("pytorch") is None:
            self.skipTest("the binary was not built, or renders no JobSet")
        for name in names():
            if name != "seed-image":
                found = rendered(name)
                yield name, found, table(name, run=found.roles["trainer" if "trainer" in found.roles else "worker"].variables["INFRA_RUN"])

    def test_the_table_is_what_is_rendered(self):
        for name, found, wanted in self.contracts():
            self.assertEqual(found.path, wanted.path, name)
            self.assertEqual(set(found.roles), set(wanted.roles), name)
            for role, pods in wanted.roles.items():
                told = found.roles[role]
                self.assertEqual((told.launcher, told.words, told.replicas), (pods.launcher, pods.words, pods.replicas), f"{name}: {role}")
                for index in {0, pods.replicas - 1}:
                    theirs, ours = told.environment(index, attempt=2), pods.environment(index, attempt=2)
                    for variable in set(ours) - FREE - ({"INFRA_SUCCESS"} if role == "ps" else set()):
                        self.assertEqual(theirs.get(variable), ours[variable], f"{name}: {role} {index}: {variable}")
                    self.assertGreater(int(theirs["INFRA_GRACE"]), 0)

    def test_pods_find_the_launchers_of_this_repository(self):
        for name, found, wanted in self.contracts():
            for launcher in {"prepare.sh"} | {pods.launcher for pods in wanted.roles.values()}:
                self.assertEqual(found.scripts.get(launcher), launcher_text(launcher), f"{name}: {launcher}")

    def test_every_pod_is_prepared_by_root(self):
        for name, found, wanted in self.contracts():
            (jobset,) = jobsets(rendered_objects(name))
            for entry in jobset["spec"]["replicatedJobs"]:
                prepare = prepare_of(entry["template"]["spec"]["template"]["spec"])
                self.assertEqual(prepare["command"], ["/bin/sh", f"{SCRIPT_DIRECTORY}/prepare.sh"], name)
                self.assertEqual(prepare["securityContext"]["runAsUser"], 0, name)
                known = set(variables_of(prepare))
                self.assertLessEqual(DIRECTORIES, known, name)
                self.assertEqual("DATA_STAMP" in known, wanted.roles[entry["name"]].stamp is not None, name)


class Table(unittest.TestCase):
    def test_nothing_is_left_unexpanded(self):
        for name in names():
            if name != "seed-image":
                for role, pods in contract(name).roles.items():
                    left = [key for key, text in pods.environment(0).items() if "$(" in text]
                    self.assertEqual(left, [], f"{name}: {role}")

    def test_a_restarted_group_meets_under_another_name(self):
        for name, variable in (("pytorch", "PET_RDZV_ID"), ("paddle", "PADDLE_JOB_ID")):
            (pods,) = contract(name).roles.values()
            self.assertEqual(len({pods.environment(1, attempt=attempt)[variable] for attempt in range(3)}), 3)


if __name__ == "__main__":
    unittest.main()
