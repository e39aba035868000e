//! Labels, tags, domains and resources by which infra, Kubernetes and AWS recognise what belongs to a cluster. Each is spelled here and
//! nowhere else: templates get them as values.

use std::fmt::Display;

/// The domain that every cluster's private hosted zone, and every label of ours, is below.
pub(crate) const INTERNAL_DOMAIN: &str = "infra.internal";

/// The label of a node with the name of its pool.
pub(crate) const POOL_LABEL: &str = "infra.internal/pool";
/// The label of a node with the model of its GPUs.
pub(crate) const GPU_MODEL_LABEL: &str = "infra.internal/gpu-model";
/// The label of a node with the number of its GPUs.
pub(crate) const GPU_COUNT_LABEL: &str = "infra.internal/gpu-count";
/// The label of a node with the GiB that pods can have of its instance store.
pub(crate) const SCRATCH_LABEL: &str = "infra.internal/scratch-gib";
/// The label of a node with the number of its EFA adapters.
pub(crate) const EFA_LABEL: &str = "infra.internal/efa";
/// The label of a node with its instance type, which the cloud controller manager sets.
pub(crate) const INSTANCE_TYPE_LABEL: &str = "node.kubernetes.io/instance-type";
/// The label of a controller's node. No kubelet may set it; a controller's add-on step sets it, on its own node only.
pub(crate) const CONTROLLER_LABEL: &str = "node-role.kubernetes.io/control-plane";
/// The label of a node that no Service of type LoadBalancer may have as a target.
pub(crate) const NO_LOAD_BALANCER_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The label by which the cluster autoscaler recognises a GPU node.
pub(crate) const ACCELERATOR_LABEL: &str = "k8s.amazonaws.com/accelerator";

/// The resource by which a node offers its GPUs and a pod requests them. The taint of GPU nodes has the same name.
pub(crate) const GPU_RESOURCE: &str = "nvidia.com/gpu";

/// The resource by which a node offers its EFA adapters and a pod requests them.
pub(crate) const EFA_RESOURCE: &str = "vpc.amazonaws.com/efa";
/// The resource by which a node offers huge pages and a pod requests them.
pub(crate) const HUGE_PAGES_RESOURCE: &str = "hugepages-2Mi";

/// The resource by which a node offers space for what pods write, and a pod requests it.
pub(crate) const STORAGE_RESOURCE: &str = "ephemeral-storage";

/// The label with the tool that created an object.
pub(crate) const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// This program, as the manager of an object.
pub(crate) const MANAGER: &str = "infra";
/// The label of a team's namespace, and of what belongs to the team, with the name of the team.
pub(crate) const TEAM_LABEL: &str = "infra.internal/team";
/// The label of a user's rights with the name of the user.
pub(crate) const USER_LABEL: &str = "infra.internal/user";
/// The annotation of a user's rights with the day on which the certificate expires.
pub(crate) const VALID_UNTIL_ANNOTATION: &str = "infra.internal/valid-until";
/// The label of a Secret that infra created, with what it is for.
pub(crate) const SECRET_LABEL: &str = "infra.internal/secret";
/// The annotation of a Secret with the names of its variables, or its registry: what is known of it without its data.
pub(crate) const HOLDS_ANNOTATION: &str = "infra.internal/holds";

/// The label of a job's object with the name of the job.
pub(crate) const JOB_LABEL: &str = "infra.internal/job";
/// The label of a job's pod with what it does in the job.
pub(crate) const JOB_ROLE_LABEL: &str = "infra.internal/role";
/// The role of what shows a job's results, and does no part of the job.
pub(crate) const TENSORBOARD_ROLE: &str = "tensorboard";
/// The label of a job's object with the framework whose contract it follows.
pub(crate) const FRAMEWORK_LABEL: &str = "infra.internal/framework";
/// The label of a job's object with the id of the run.
pub(crate) const RUN_LABEL: &str = "infra.internal/run";
/// The label of the list of a job's runs with the name of the job. It has no other label of the job, since it stays when the job is deleted.
pub(crate) const RUNS_LABEL: &str = "infra.internal/runs-of";
/// The label by which JobSet says which attempt of its group an object belongs to.
pub(crate) const ATTEMPT_LABEL: &str = "jobset.sigs.k8s.io/restart-attempt";
/// The label by which JobSet says which JobSet an object belongs to.
pub(crate) const JOB_SET_LABEL: &str = "jobset.sigs.k8s.io/jobset-name";
/// The annotation of a job with the digest of what it was rendered from: the same digest is the same job.
pub(crate) const DIGEST_ANNOTATION: &str = "infra.internal/digest";
/// The annotation of a job with the claim that it writes to.
pub(crate) const CLAIM_ANNOTATION: &str = "infra.internal/claim";
/// The annotation of a job that continues an earlier run.
pub(crate) const RESUMED_ANNOTATION: &str = "infra.internal/resumed";
/// The annotation of a job with its directory in that claim.
pub(crate) const PATH_ANNOTATION: &str = "infra.internal/path";

/// The prefix of every tag of ours.
pub(crate) const OWN_TAG_PREFIX: &str = "infra:";
/// The tag with the name of the cluster that a resource belongs to.
pub(crate) const CLUSTER_TAG: &str = "infra:cluster";
/// The tag of a machine and of its Auto Scaling group with the name of its role.
pub(crate) const ROLE_TAG: &str = "infra:role";
/// The tag of a pool's Auto Scaling group with the number of machines that cluster.yaml asked for.
pub(crate) const COUNT_TAG: &str = "infra:count";
/// The tag of the Auto Scaling group of a pool with a schedule, with the limits that are the pool's own.
pub(crate) const LIMITS_TAG: &str = "infra:limits";
/// The tag of the network stack with the S3 URI that assets are uploaded to.
pub(crate) const S3_URI_TAG: &str = "infra:s3-uri";
/// The tag of the control plane stack with the digests of its certificate authorities.
pub(crate) const CREDENTIALS_TAG: &str = "infra:credentials";

/// The tag that CloudFormation puts on what a stack creates.
pub(crate) const STACK_NAME_TAG: &str = "aws:cloudformation:stack-name";
/// The tag that Auto Scaling puts on a machine, with the name of its Auto Scaling group.
pub(crate) const GROUP_NAME_TAG: &str = "aws:autoscaling:groupName";
/// The tag of a load balancer with the Service that the cloud controller manager created it for.
pub(crate) const SERVICE_TAG: &str = "kubernetes.io/service-name";
/// The tag of a load balancer with the Service that the AWS Load Balancer Controller created it for.
pub(crate) const CONTROLLER_SERVICE_TAG: &str = "service.k8s.aws/stack";
/// The tag with the cluster that the AWS Load Balancer Controller created a resource for.
pub(crate) const CONTROLLER_CLUSTER_TAG: &str = "elbv2.k8s.aws/cluster";
/// What the descriptions of rules begin with that the AWS Load Balancer Controller adds to security groups.
pub(crate) const CONTROLLER_RULE_PREFIX: &str = "elbv2.k8s.aws/";
/// What the descriptions of rules begin with that the cloud controller manager adds for network load balancers.
pub(crate) const SERVICE_RULE_PREFIX: &str = "kubernetes.io/rule/nlb/";

/// The registry of Kubernetes' images.
pub(crate) const KUBERNETES_REGISTRY: &str = "registry.k8s.io";
/// The host that kubelet and kubectl are downloaded from.
pub(crate) const KUBERNETES_DOWNLOADS: &str = "dl.k8s.io";

/// What the names of the change sets that infra creates begin with.
pub(crate) const CHANGE_SET_PREFIX: &str = "infra-";
/// The tag of a KMS key that `infra init` created, and which `infra destroy` keeps.
pub(crate) const KEPT_TAG: &str = "infra:kept";
/// The value of that tag, for readers.
pub(crate) const KEPT_VALUE: &str = "created by infra init and kept by infra destroy";

/// What the names of a pool's role and of its stack begin with.
pub(crate) const POOL_PREFIX: &str = "pool-";

/// The prefix of the tags that the cluster autoscaler reads.
pub(crate) const AUTOSCALER_TAG_PREFIX: &str = "k8s.io/cluster-autoscaler/";
/// The prefix of the tags from which the autoscaler reads the labels of a pool without nodes.
pub(crate) const AUTOSCALER_LABEL_PREFIX: &str = "k8s.io/cluster-autoscaler/node-template/label/";
/// The prefix of the tags from which the autoscaler reads the taints of a pool without nodes.
pub(crate) const AUTOSCALER_TAINT_PREFIX: &str = "k8s.io/cluster-autoscaler/node-template/taint/";
/// The prefix of the tags from which the autoscaler reads the devices of a pool without nodes.
pub(crate) const AUTOSCALER_RESOURCE_PREFIX: &str = "k8s.io/cluster-autoscaler/node-template/resources/";

/// The account of AWS's own images for training, the Deep Learning Containers, in most regions:
/// <https://aws.github.io/deep-learning-containers/reference/available_images/>.
pub(crate) const DEEP_LEARNING_CONTAINERS: &str = "763104351884";

/// The domain of a cluster's private hosted zone.
pub(crate) fn internal_domain(cluster: impl Display) -> String {
    format!("{cluster}.{INTERNAL_DOMAIN}")
}

/// The tag by which Kubernetes' controllers recognise a cluster's resources, and which they put on what they create.
pub(crate) fn kubernetes_cluster_tag(cluster: impl Display) -> String {
    format!("kubernetes.io/cluster/{cluster}")
}

/// The name of an EC2 or Auto Scaling filter by a tag.
pub(crate) fn tag_filter(tag: &str) -> String {
    format!("tag:{tag}")
}
