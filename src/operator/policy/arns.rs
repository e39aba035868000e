//! What belongs to a cluster, as policies name it: ARNs, and tags where AWS makes up the names.

use serde_json::{Value, json};

use crate::config::Cluster;
use crate::config::values::{Partition, S3Uri};
use crate::well_known::{
    CHANGE_SET_PREFIX, CLUSTER_TAG, CONTROLLER_CLUSTER_TAG, POOL_PREFIX, internal_domain,
    kubernetes_cluster_tag,
};

/// How much of a stack's name is certain to be in the names that CloudFormation makes up for roles and instance profiles, of which it
/// shortens long ones.
const CERTAIN_PART: usize = 24;

/// The names of a cluster's resources.
pub(super) struct ClusterArns<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    s3_uri: &'a S3Uri,
    partition: Partition,
}

impl<'a> ClusterArns<'a> {
    pub(super) fn new(cluster: &'a Cluster, s3_uri: &'a S3Uri) -> Self {
        Self { cluster, s3_uri, partition: cluster.region.partition() }
    }

    /// The ARN of a regional resource of the account.
    pub(super) fn regional(&self, service: &str, resource: &str) -> String {
        format!("arn:{}:{service}:{}:*:{resource}", self.partition, self.cluster.region)
    }

    fn iam(&self, resource: &str) -> String {
        format!("arn:{}:iam::*:{resource}", self.partition)
    }

    /// The stacks, by their whole names; those of pools by what the names begin with, since pools are added and deleted.
    pub(super) fn stacks(&self) -> Vec<String> {
        let name = &self.cluster.name;
        ["network", "storage", "control-plane", &format!("{POOL_PREFIX}*")]
            .map(|part| self.regional("cloudformation", &format!("stack/{name}-{part}/*")))
            .to_vec()
    }

    /// The change sets that infra creates.
    pub(super) fn change_sets(&self) -> String {
        self.regional("cloudformation", &format!("changeSet/{CHANGE_SET_PREFIX}*"))
    }

    /// The stacks that have machines, without what follows.
    fn stacks_of_machines(&self) -> [String; 2] {
        let name = &self.cluster.name;
        [format!("{name}-control-plane-"), format!("{name}-{POOL_PREFIX}")]
    }

    /// The Auto Scaling groups.
    pub(super) fn groups(&self) -> Vec<String> {
        let group = |stack| format!("autoScalingGroup:*:autoScalingGroupName/{stack}*");
        self.stacks_of_machines().map(|stack| self.regional("autoscaling", &group(stack))).to_vec()
    }

    /// The IAM roles.
    pub(super) fn roles(&self) -> Vec<String> {
        self.named_by_cloudformation("role")
    }

    /// The IAM roles and the instance profiles.
    pub(super) fn roles_and_profiles(&self) -> Vec<String> {
        [self.roles(), self.named_by_cloudformation("instance-profile")].concat()
    }

    fn named_by_cloudformation(&self, kind: &str) -> Vec<String> {
        let mut arns = self.stacks_of_machines().map(|stack| {
            let certain = &stack[..stack.len().min(CERTAIN_PART)];
            self.iam(&format!("{kind}/{certain}*"))
        });
        arns.sort();
        let mut arns = arns.to_vec();
        arns.dedup();
        arns
    }

    /// The roles that AWS's services have for themselves.
    pub(super) fn service_roles(&self) -> String {
        self.iam("role/aws-service-role/*")
    }

    /// The role with which Auto Scaling starts machines.
    pub(super) fn auto_scaling_role(&self) -> String {
        self.iam("role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling")
    }

    /// The bucket that assets are in.
    pub(super) fn bucket(&self) -> String {
        format!("arn:{}:s3:::{}", self.partition, self.s3_uri.bucket())
    }

    /// The prefix of the cluster's objects.
    pub(super) fn object_prefix(&self) -> String {
        format!("{}{}/*", self.s3_uri.key_prefix(), self.cluster.name)
    }

    /// The cluster's objects.
    pub(super) fn objects(&self) -> String {
        format!("{}/{}", self.bucket(), self.object_prefix())
    }

    /// The KMS key.
    pub(super) fn key(&self) -> &str {
        self.cluster.kms_key.as_str()
    }

    /// A KMS condition: the key is used through a service.
    pub(super) fn through(&self, service: &str) -> Value {
        let host = format!("{service}.{}.{}", self.cluster.region, self.partition.dns_suffix());
        json!({"StringEquals": {"kms:ViaService": host}})
    }

    /// Hosted zones: one, or all of the account.
    pub(super) fn hosted_zone(&self, id: Option<&str>) -> String {
        format!("arn:{}:route53:::hostedzone/{}", self.partition, id.unwrap_or("*"))
    }

    /// A Route 53 condition: all records of a request are below the cluster's private domain.
    pub(super) fn private_records(&self) -> Value {
        let domain = internal_domain(&self.cluster.name);
        json!({"ForAllValues:StringLike": {RECORD_NAMES: [domain, format!("*.{domain}")]}})
    }

    /// The name that the boundary has unless cluster.yaml names another.
    pub(super) fn boundary_name(&self) -> String {
        let boundary = self.cluster.permissions_boundary.as_ref();
        let name = boundary.and_then(|arn| arn.as_str().rsplit('/').next()).map(str::to_owned);
        name.unwrap_or_else(|| format!("infra-{}-boundary", self.cluster.name))
    }

    /// An IAM condition: a role has the cluster's boundary.
    pub(super) fn has_boundary(&self) -> Value {
        match &self.cluster.permissions_boundary {
            Some(arn) => json!({"StringEquals": {"iam:PermissionsBoundary": arn.as_str()}}),
            None => {
                let arn = self.iam(&format!("policy/{}", self.boundary_name()));
                json!({"StringLike": {"iam:PermissionsBoundary": arn}})
            }
        }
    }

    /// A condition: stacks of this cluster created the resource.
    pub(super) fn of_stacks(&self) -> Value {
        json!({"StringEquals": {format!("aws:ResourceTag/{CLUSTER_TAG}"): self.cluster.name.as_str()}})
    }

    /// A condition: Kubernetes created the resource for this cluster.
    pub(super) fn of_kubernetes(&self) -> Value {
        json!({"StringEquals": {format!("aws:ResourceTag/{}", self.kubernetes_tag()): "owned"}})
    }

    /// A condition: the AWS Load Balancer Controller created the resource for this cluster.
    pub(super) fn of_load_balancer_controller(&self) -> Value {
        let tag = format!("aws:ResourceTag/{CONTROLLER_CLUSTER_TAG}");
        json!({"StringEquals": {tag: self.cluster.name.as_str()}})
    }

    /// The tag that Kubernetes puts on what it creates.
    pub(super) fn kubernetes_tag(&self) -> String {
        kubernetes_cluster_tag(&self.cluster.name)
    }
}

/// Route 53's key for the names of the records that a request changes.
pub(super) const RECORD_NAMES: &str = "route53:ChangeResourceRecordSetsNormalizedRecordNames";
