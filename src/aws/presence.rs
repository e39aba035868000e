//! Whether the resource that an ARN names still exists: the tagging service may list it for an hour after its deletion.

use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::RequestId;

use super::actions::{self, Action};
use super::{AwsError, Clients, StackStatus};

impl Clients {
    /// Queries the service that an ARN belongs to; a resource that is being deleted or terminated does not exist. A resource of a kind
    /// that infra never creates counts as existing, so that the user looks at it.
    pub(crate) async fn exists(&self, arn: &str) -> Result<bool, AwsError> {
        let mut parts = arn.splitn(6, ':').skip(2);
        let (service, resource) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
        let (kind, id) = resource.split_once('/').unwrap_or((resource, ""));
        let answer = match (service, kind) {
            ("ec2", _) => self.is_in_ec2(kind, id).await,
            ("elasticloadbalancing", "loadbalancer") => self.is_load_balancer(arn, id).await,
            // A listener is deleted with its load balancer, whose ARN is the beginning of its own.
            ("elasticloadbalancing", "listener") => {
                let balancer = arn.replacen(":listener/", ":loadbalancer/", 1);
                let balancer = balancer.rsplit_once('/').map_or(balancer.as_str(), |(before, _)| before);
                self.is_load_balancer(balancer, id).await
            }
            ("elasticloadbalancing", "targetgroup") => {
                let call = self.balancers.describe_target_groups().target_group_arns(arn).send();
                lists_any(actions::ELB_DESCRIBE_TARGET_GROUPS, call, |answer| answer.target_groups).await
            }
            ("elasticfilesystem", "file-system") => self.file_system(id).await.map(|found| {
                found.is_some_and(|system| !matches!(system.state.as_str(), "deleting" | "deleted"))
            }),
            ("cloudformation", "stack") => self
                .stack(arn)
                .await
                .map(|found| found.is_some_and(|stack| stack.status != StackStatus::DeleteComplete)),
            ("kms", "key") => match self.key(arn).await {
                Err(error) if error.is_denied() => Ok(true),
                other => other.map(|found| found.is_some_and(|key| !key.is_pending_deletion())),
            },
            ("route53", "hostedzone") => self.hosted_zone(id).await.map(|found| found.is_some()),
            _ => Ok(true),
        };
        match answer {
            Err(error) if is_resource_missing(&error) => Ok(false),
            other => other,
        }
    }

    async fn is_load_balancer(&self, arn: &str, id: &str) -> Result<bool, AwsError> {
        const OPERATION: Action = actions::ELB_DESCRIBE_LOAD_BALANCERS;
        if id.contains('/') {
            let call = self.balancers.describe_load_balancers().load_balancer_arns(arn).send();
            return lists_any(OPERATION, call, |answer| answer.load_balancers).await;
        }
        let call = self.classic_balancers.describe_load_balancers().load_balancer_names(id).send();
        lists_any(OPERATION, call, |answer| answer.load_balancer_descriptions).await
    }

    async fn is_in_ec2(&self, kind: &str, id: &str) -> Result<bool, AwsError> {
        let ec2 = &self.ec2;
        match kind {
            "vpc" => Ok(self.vpc(id).await?.is_some()),
            "volume" => self.is_volume_kept(id).await,
            "instance" => {
                let call = ec2.describe_instances().instance_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_INSTANCES, call, |answer| {
                    let groups = answer.reservations.unwrap_or_default().into_iter();
                    let machines = groups.flat_map(|group| group.instances.unwrap_or_default()).collect();
                    without_deleted(Some(machines), |machine| machine.state.as_ref()?.name.as_ref())
                })
                .await
            }
            "natgateway" => {
                let call = ec2.describe_nat_gateways().nat_gateway_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_NAT_GATEWAYS, call, |answer| {
                    without_deleted(answer.nat_gateways, |gateway| gateway.state.as_ref())
                })
                .await
            }
            "vpc-endpoint" => {
                let call = ec2.describe_vpc_endpoints().vpc_endpoint_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_VPC_ENDPOINTS, call, |answer| {
                    without_deleted(answer.vpc_endpoints, |endpoint| endpoint.state.as_ref())
                })
                .await
            }
            "placement-group" => {
                let call = ec2.describe_placement_groups().group_names(id).send();
                lists_any(actions::EC2_DESCRIBE_PLACEMENT_GROUPS, call, |answer| {
                    without_deleted(answer.placement_groups, |group| group.state.as_ref())
                })
                .await
            }
            _ => self.is_listed_in_ec2(kind, id).await,
        }
    }

    /// Whether EC2 lists a resource of a kind that it no longer shows once it is deleted.
    async fn is_listed_in_ec2(&self, kind: &str, id: &str) -> Result<bool, AwsError> {
        let ec2 = &self.ec2;
        match kind {
            "snapshot" => {
                let call = ec2.describe_snapshots().snapshot_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_SNAPSHOTS, call, |answer| answer.snapshots).await
            }
            "network-interface" => {
                let call = ec2.describe_network_interfaces().network_interface_ids(id).send();
                let action = actions::EC2_DESCRIBE_NETWORK_INTERFACES;
                lists_any(action, call, |answer| answer.network_interfaces).await
            }
            "security-group" => {
                let call = ec2.describe_security_groups().group_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_SECURITY_GROUPS, call, |answer| answer.security_groups).await
            }
            "subnet" => {
                let call = ec2.describe_subnets().subnet_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_SUBNETS, call, |answer| answer.subnets).await
            }
            "internet-gateway" => {
                let call = ec2.describe_internet_gateways().internet_gateway_ids(id).send();
                let action = actions::EC2_DESCRIBE_INTERNET_GATEWAYS;
                lists_any(action, call, |answer| answer.internet_gateways).await
            }
            "route-table" => {
                let call = ec2.describe_route_tables().route_table_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_ROUTE_TABLES, call, |answer| answer.route_tables).await
            }
            "elastic-ip" => {
                let call = ec2.describe_addresses().allocation_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_ADDRESSES, call, |answer| answer.addresses).await
            }
            "launch-template" => {
                let call = ec2.describe_launch_templates().launch_template_ids(id).send();
                lists_any(actions::EC2_DESCRIBE_LAUNCH_TEMPLATES, call, |answer| answer.launch_templates)
                    .await
            }
            _ => Ok(true),
        }
    }
}

/// Whether the answer to a call lists anything.
async fn lists_any<A, E, T>(
    action: Action,
    call: impl Future<Output = Result<A, SdkError<E>>>,
    list: impl FnOnce(A) -> Option<Vec<T>>,
) -> Result<bool, AwsError>
where
    E: ProvideErrorMetadata + RequestId + std::error::Error + 'static,
{
    let answer = call.await.map_err(AwsError::of(action))?;
    Ok(list(answer).is_some_and(|list| !list.is_empty()))
}

/// States of resources that EC2 shows for an hour after they are deleted.
const DELETED: [&str; 4] = ["deleting", "deleted", "shutting-down", "terminated"];

/// The listed resources whose state is not one of a deleted resource.
fn without_deleted<T, S: AsRef<str>>(
    list: Option<Vec<T>>,
    state: impl Fn(&T) -> Option<&S>,
) -> Option<Vec<T>> {
    let is_deleted = |state: &S| DELETED.iter().any(|deleted| state.as_ref().eq_ignore_ascii_case(deleted));
    let mut list = list?;
    list.retain(|found| state(found).is_some_and(|state| !is_deleted(state)));
    Some(list)
}

/// Each service has its own code for a resource that does not exist.
fn is_resource_missing(error: &AwsError) -> bool {
    let code = error.code.as_deref().unwrap_or_default();
    code.contains("NotFound") || code.ends_with(".Malformed") || code.ends_with(".Unknown")
}
