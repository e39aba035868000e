"""What a cluster accepts and refuses of JobSets, whichever definition of their API it has: checks that several suites make."""

import json

import jobset


class JobSetChecks:
    """For a test case that knows how to create and to change a JobSet on trial."""

    # Whether JobSet's own definition of the API is in the place of ours.
    has_own_definition = False

    def try_to_create(self, text):
        """The words of the refusal of a JobSet, or nothing; nothing is created."""
        raise NotImplementedError

    def try_to_change(self, name, spec):
        """The words of the refusal of a change, or nothing; nothing is changed."""
        raise NotImplementedError

    def check_what_is_accepted(self):
        for changes in jobset.ACCEPTED:
            self.assertEqual(self.try_to_create(jobset.changed(changes)), "", changes)
        refusal = self.try_to_create(jobset.changed(jobset.SHORTEST))
        if self.has_own_definition:
            self.assertIn(jobset.WITHOUT_DEFAULTS, refusal)
        else:
            self.assertEqual(refusal, "")

    def check_what_is_refused(self):
        for changes, *words in jobset.REFUSED:
            with self.subTest(words[0]):
                self.assertIn(self.expected(words), self.try_to_create(jobset.changed(changes)))

    def check_what_cannot_be_changed(self, name):
        """Of a JobSet like the pair, which nobody runs."""
        for spec, *words in jobset.UNCHANGEABLE:
            with self.subTest(json.dumps(spec)[:60]):
                self.assertIn(self.expected(words), self.try_to_change(name, spec))
        refusal = self.try_to_change(name, {"failurePolicy": {"maxRestarts": 5}})
        self.assertEqual(refusal == "", not self.has_own_definition, refusal)

    def expected(self, words):
        return words[-1] if self.has_own_definition else words[0]
