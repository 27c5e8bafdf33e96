# RUN: pto python %s -p a2a3sim
# EXIT: 1
from simpler_setup import SceneTestCase, TaskArgsBuilder, scene_test


@scene_test(level=3, runtime="tensormap_and_ringbuffer")
class TestNothing(SceneTestCase):
    CALLABLE = {"orchestration": lambda orch, callables, args, config: None, "callables": []}
    CASES = [{"name": "small", "platforms": ["a5sim"], "config": {"device_count": 1}}]

    def generate_args(self, params):
        return TaskArgsBuilder()

    def compute_golden(self, args, params):
        pass


SceneTestCase.run_module(__name__)
# STDERR:
#| error[PTO-E3107]: cannot find a case for platform a2a3sim (--manual exclude)
#|   help: existing cases: TestNothing::small (a5sim)
