"""Services of type LoadBalancer: the real cloud controller manager makes classic load balancers, whose targets are the nodes of pools.

One cluster is destroyed while its API answers, the other when its controller has no power any more.
"""

import json
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from test_minimal import actions  # noqa: E402

CLUSTER = (ROOT / "tests/clusters/minimal/cluster.yaml").read_text().replace("m5.large}", "m5.large, count: 2}")
CLUSTER += "addons: {clusterAutoscaler: false}\n"
NODES = 3
WEB = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{matchLabels: {{app: web}}}}}}
      containers:
      - name: web
        image: {JOB_IMAGE}
        command: [sh, -c, "mkdir /tmp/www; hostname > /tmp/www/index.html; exec python3 -m http.server --directory /tmp/www 8080"]
        readinessProbe: {{httpGet: {{port: 8080}}, periodSeconds: 2}}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
# Only of the services that the cloud controller manager calls.
SERVICES = ("ec2", "elasticloadbalancing", "autoscaling")


def load_tests(_loader, _tests, _pattern):
    return unittest.TestSuite([in_order(Life), in_order(DeadApi)])


class ServiceChapters(Chapters):
    text = CLUSTER

    def client(self, service):
        return self.cluster.account.client(service)

    def balancers(self):
        return self.client("elb").describe_load_balancers()["LoadBalancerDescriptions"]

    def balancer(self):
        [balancer] = self.balancers()
        return balancer

    def groups(self):
        """The security groups, by name."""
        return {group["GroupName"]: group for group in self.client("ec2").describe_security_groups()["SecurityGroups"]}

    def groups_of_balancers(self):
        return [name for name in self.groups() if name.startswith("k8s-elb-")]

    def groups_open_to(self, group_id):
        """Those whose rules let a security group in."""
        return {group["GroupId"] for group in self.groups().values() for rule in group["IpPermissions"]
                if any(pair["GroupId"] == group_id for pair in rule["UserIdGroupPairs"])}

    def groups_of_role(self, role):
        found = self.client("ec2").describe_instances(InstanceIds=[machine.id for machine in self.of_role(role)])
        return {group["GroupId"] for reservation in found["Reservations"] for instance in reservation["Instances"]
                for group in instance["SecurityGroups"]}

    def targets(self):
        return {instance["InstanceId"] for instance in self.balancer()["Instances"]}

    def rules(self):
        """The targets of the listeners of load balancers."""
        return self.cluster.network.load_balancers.rules or ""

    def web_pods(self):
        """Those that are not being deleted."""
        return {pod["metadata"]["name"] for pod in self.get("pods", "--selector=app=web")["items"]
                if "deletionTimestamp" not in pod["metadata"]}

    def workers(self):
        return {machine.id for machine in self.of_role("pool-cpu")}

    def warnings(self):
        """What the cloud controller manager could not do for the Service, in its own words."""
        events = self.get("events", "--field-selector=involvedObject.kind=Service,type=Warning")["items"]
        return [f"{event['reason']}: {event['message']}" for event in events if event["source"].get("component") == "service-controller"]

    def create_service(self):
        """The name of its load balancer."""
        began = time.monotonic()
        self.cluster.kubectl("apply", "--filename=-", input=SERVICE)
        try:
            self.wait_for("the load balancer of the Service", self.host_name, 180)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.warnings()}") from None
        self.wait_for("a page through the load balancer", lambda: self.fetch_page(self.host_name()), 180)
        say(f"a page through a new load balancer: {time.monotonic() - began:.0f} s")
        return self.host_name()

    def host_name(self):
        return "".join(entry["hostname"] for entry in self.get("service", "web")["status"]["loadBalancer"].get("ingress", []))

    def fetch_page(self, name):
        """As the operator sees it; nothing if there is none."""
        program = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"
        done = self.cluster.run(sys.executable, "-c", program, f"http://{name}/")
        return done.stdout.strip() if done.returncode == 0 else ""

    def pages(self):
        """What comes through the load balancer; a fetch that fails is among it."""
        name = self.host_name()
        return {self.fetch_page(name) for _ in range(20)}

    def start_web(self):
        self.cluster.kubectl("apply", "--filename=-", input=WEB)
        self.cluster.kubectl("rollout", "status", "deployment/web", "--timeout=180s", timeout=200)

    def nothing_is_left(self):
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
        self.assertEqual(self.balancers(), [])
        self.assertEqual(set(self.groups()), {"default"})
        self.assertEqual(self.client("ec2").describe_network_interfaces()["NetworkInterfaces"], [])


class Life(ServiceChapters):
    def test_a_page_is_fetched_through_the_load_balancer(self):
        self.start_web()
        name = self.create_service()
        self.assertEqual(name, self.balancer()["DNSName"])
        self.assertEqual(len(self.web_pods()), 2)
        self.assertEqual(self.pages(), self.web_pods())
        self.assertEqual(self.warnings(), [])

    def test_it_is_a_classic_load_balancer_of_this_cluster(self):
        balancer, service = self.balancer(), self.get("service", "web")
        [port] = service["spec"]["ports"]
        self.assertEqual([description["Listener"] for description in balancer["ListenerDescriptions"]], [
            {"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": port["nodePort"]}])
        self.assertEqual(balancer["HealthCheck"]["Target"], f"TCP:{port['nodePort']}")
        [described] = self.client("elb").describe_tags(LoadBalancerNames=[balancer["LoadBalancerName"]])["TagDescriptions"]
        self.assertEqual({tag["Key"]: tag["Value"] for tag in described["Tags"]},
                         {"kubernetes.io/cluster/minimal": "owned", "kubernetes.io/service-name": "default/web"})

    def test_its_targets_are_the_nodes_of_pools(self):
        [controller] = self.of_role("controller")
        self.assertEqual(len(self.workers()), 2)
        self.assertEqual(self.targets(), self.workers())
        self.assertNotIn(controller.id, self.targets())

    def test_only_nodes_of_pools_let_it_in(self):
        balancer = self.balancer()
        group = self.groups()[f"k8s-elb-{balancer['LoadBalancerName']}"]
        self.assertEqual(balancer["SecurityGroups"], [group["GroupId"]])
        opened = {(rule["IpProtocol"], rule["FromPort"], rule["ToPort"], entry["CidrIp"])
                  for rule in group["IpPermissions"] for entry in rule["IpRanges"]}
        self.assertEqual(opened, {("tcp", 80, 80, "0.0.0.0/0"), ("icmp", 3, 4, "0.0.0.0/0")})
        self.assertEqual(self.groups_open_to(group["GroupId"]), self.groups_of_role("pool-cpu"))
        self.assertFalse(self.groups_of_role("pool-cpu") & self.groups_of_role("controller"))

    def test_another_port_of_the_service_is_another_listener(self):
        ports = [{"name": "web", "port": 80, "targetPort": 8080}, {"name": "other", "port": 8000, "targetPort": 8080}]
        self.cluster.kubectl("patch", "service", "web", f"--patch={json.dumps({'spec': {'ports': ports}})}")
        name = self.host_name()
        self.wait_for("a page at the other port", lambda: self.fetch_page(f"{name}:8000"), 180)
        self.cluster.kubectl("patch", "service", "web", "--type=json", '--patch=[{"op": "remove", "path": "/spec/ports/1"}]')
        self.wait_for("its end", lambda: len(self.balancer()["ListenerDescriptions"]) == 1, 180)
        self.wait_for("no page at the other port", lambda: not self.fetch_page(f"{name}:8000"), 180)
        self.assertTrue(self.fetch_page(name))
        self.assertEqual(self.warnings(), [])

    def test_a_new_node_is_registered_and_a_lost_one_is_not(self):
        before, lost = self.workers(), self.of_role("pool-cpu")[0]
        self.client("ec2").terminate_instances(InstanceIds=[lost.id])
        began = time.monotonic()
        self.wait_for("another machine", lambda: self.workers() - before and lost.id not in self.workers())
        [new] = [machine for machine in self.of_role("pool-cpu") if machine.id not in before]
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES, without=lost), 300)
        self.wait_for("the targets", lambda: self.targets() == before - {lost.id} | {new.id}, 300)
        say(f"a worker and its registration replaced: {time.monotonic() - began:.0f} s")
        self.wait_for("the new node passes the health check", lambda: new.facts["address"] in self.rules(), 180)
        self.wait_for("a page at each fetch", lambda: "" not in self.pages(), 180)
        say(f"a page at each fetch again: {time.monotonic() - began:.0f} s")
        # The pods of a Node that was deleted are collected, and replaced, a minute later.
        self.wait_for("pages of both pods", lambda: self.pages() == self.web_pods(), 300)
        self.assertEqual(self.targets(), self.workers())
        self.assertEqual(self.warnings(), [])

    def test_the_cloud_controller_makes_calls_that_its_role_allows(self):
        self.assertLessEqual({
            "ec2:AuthorizeSecurityGroupIngress", "ec2:CreateSecurityGroup", "elasticloadbalancing:ConfigureHealthCheck",
            "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateLoadBalancerListeners",
            "elasticloadbalancing:DeleteLoadBalancerListeners", "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
            "elasticloadbalancing:ModifyLoadBalancerAttributes", "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
        }, self.allowed_calls())

    def allowed_calls(self):
        """The calls of the controller so far, all of which its role allows."""
        stack = json.loads((self.cluster.directory / "stacks/control-plane.json").read_text())
        allowed = set(actions(stack["Resources"]["ControllerRole"]["Properties"]["Policies"]))
        [controller] = self.of_role("controller")
        made = {f"{call.service}:{call.action}" for call in self.cluster.network.aws.calls
                if call.source == controller.facts["address"] and call.service in SERVICES}
        self.assertEqual(made - allowed, set())
        return made

    def test_the_load_balancer_is_deleted_with_its_service(self):
        name, group = self.host_name(), self.balancer()["SecurityGroups"][0]
        began = time.monotonic()
        self.cluster.kubectl("delete", "service", "web", "--timeout=180s", timeout=200)
        say(f"a Service deleted: {time.monotonic() - began:.0f} s")
        self.assertEqual(self.balancers(), [])
        self.assertEqual(self.groups_of_balancers(), [])
        self.assertEqual(self.groups_open_to(group), set())
        self.wait_for("no page", lambda: not self.fetch_page(name), 180)
        self.assertLessEqual({"ec2:DeleteSecurityGroup", "ec2:RevokeSecurityGroupIngress", "elasticloadbalancing:DeleteLoadBalancer"},
                             self.allowed_calls())

    def test_destroy_deletes_services_and_waits_for_their_load_balancers(self):
        self.create_service()
        name = self.balancer()["LoadBalancerName"]
        plan = self.cluster.infra("destroy", "--plan-only").stdout
        self.assertRegex(plan, rf"{name}.*of Service default/web")
        began = time.monotonic()
        told = self.cluster.infra("destroy", "--yes").stderr
        say(f"infra destroy: {time.monotonic() - began:.0f} s")
        self.assertIn("deleted Service default/web", told)
        self.assertNotIn("by tag instead", told)
        self.nothing_is_left()


class DeadApi(ServiceChapters):
    def test_destroy_deletes_load_balancers_by_their_tags(self):
        self.start_web()
        self.create_service()
        balancer = self.balancer()
        [controller] = self.of_role("controller")
        controller.cut_power()
        began = time.monotonic()
        told = self.cluster.infra("destroy", "--yes").stderr
        say(f"infra destroy without the API: {time.monotonic() - began:.0f} s")
        self.assertNotIn("deleted Service", told)
        self.assertIn(f"deleted load balancer {balancer['LoadBalancerName']}", told)
        self.assertIn(f"deleted security group {balancer['SecurityGroups'][0]}", told)
        self.nothing_is_left()
