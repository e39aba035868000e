//! Whether a thing that an ARN names is really there: what the tagging service says may be an hour old.

use super::actions::{self, Action};
use super::{AwsError, Clients, StackStatus};

impl Clients {
    /// Asks the service that an ARN belongs to; what is being deleted or terminated is not there. An ARN of a kind that nobody here
    /// makes counts as there, so that somebody looks.
    pub async fn is_there(&self, arn: &str) -> Result<bool, AwsError> {
        let mut parts = arn.splitn(6, ':').skip(2);
        let (service, resource) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
        let (kind, id) = resource.split_once('/').unwrap_or((resource, ""));
        let answer = match (service, kind) {
            ("ec2", _) => self.is_in_ec2(kind, id).await,
            ("elasticloadbalancing", "loadbalancer") => self.is_balancer_there(arn, id).await,
            // A listener goes with its load balancer, whose ARN is the beginning of its own.
            ("elasticloadbalancing", "listener") => {
                let balancer = arn.replacen(":listener/", ":loadbalancer/", 1);
                let balancer = balancer.rsplit_once('/').map_or(balancer.as_str(), |(before, _)| before);
                self.is_balancer_there(balancer, id).await
            }
            ("elasticloadbalancing", "targetgroup") => {
                let call = self.balancers.describe_target_groups().target_group_arns(arn).send().await;
                call.map(|answer| !answer.target_groups.unwrap_or_default().is_empty())
                    .map_err(AwsError::of(actions::ELB_DESCRIBE_TARGET_GROUPS))
            }
            ("elasticfilesystem", "file-system") => self.file_system(id).await.map(|found| {
                found.is_some_and(|system| !matches!(system.state.as_str(), "deleting" | "deleted"))
            }),
            ("cloudformation", "stack") => self
                .stack(arn)
                .await
                .map(|found| found.is_some_and(|stack| stack.status != StackStatus::DeleteComplete)),
            ("route53", "hostedzone") => self.hosted_zone(id).await.map(|found| found.is_some()),
            _ => Ok(true),
        };
        match answer {
            Err(error) if is_missing(&error) => Ok(false),
            other => other,
        }
    }

    async fn is_balancer_there(&self, arn: &str, id: &str) -> Result<bool, AwsError> {
        const OPERATION: Action = actions::ELB_DESCRIBE_LOAD_BALANCERS;
        if id.contains('/') {
            let answer = self.balancers.describe_load_balancers().load_balancer_arns(arn).send().await;
            let answer = answer.map_err(AwsError::of(OPERATION))?;
            return Ok(!answer.load_balancers.unwrap_or_default().is_empty());
        }
        let answer = self.classic_balancers.describe_load_balancers().load_balancer_names(id).send().await;
        let answer = answer.map_err(AwsError::of(OPERATION))?;
        Ok(!answer.load_balancer_descriptions.unwrap_or_default().is_empty())
    }

    async fn is_in_ec2(&self, kind: &str, id: &str) -> Result<bool, AwsError> {
        let ec2 = &self.ec2;
        Ok(match kind {
            "instance" | "natgateway" | "vpc-endpoint" => self.is_alive_in_ec2(kind, id).await?,
            "volume" => self.is_volume_kept(id).await?,
            "placement-group" => {
                let answer = ec2.describe_placement_groups().group_names(id).send().await;
                let groups = answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_PLACEMENT_GROUPS))?
                    .placement_groups
                    .unwrap_or_default();
                let states = groups.into_iter().filter_map(|group| group.state);
                states.into_iter().any(|state| !matches!(state.as_str(), "deleted" | "deleting"))
            }
            "snapshot" => {
                let answer = ec2.describe_snapshots().snapshot_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_SNAPSHOTS))?
                    .snapshots
                    .unwrap_or_default()
                    .is_empty()
            }
            "network-interface" => {
                let answer = ec2.describe_network_interfaces().network_interface_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_NETWORK_INTERFACES))?
                    .network_interfaces
                    .unwrap_or_default()
                    .is_empty()
            }
            "security-group" => {
                let answer = ec2.describe_security_groups().group_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_SECURITY_GROUPS))?
                    .security_groups
                    .unwrap_or_default()
                    .is_empty()
            }
            "subnet" => {
                let answer = ec2.describe_subnets().subnet_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_SUBNETS))?
                    .subnets
                    .unwrap_or_default()
                    .is_empty()
            }
            "vpc" => self.vpc(id).await?.is_some(),
            "internet-gateway" => {
                let answer = ec2.describe_internet_gateways().internet_gateway_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_INTERNET_GATEWAYS))?
                    .internet_gateways
                    .unwrap_or_default()
                    .is_empty()
            }
            "route-table" => {
                let answer = ec2.describe_route_tables().route_table_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_ROUTE_TABLES))?
                    .route_tables
                    .unwrap_or_default()
                    .is_empty()
            }
            "elastic-ip" => {
                let answer = ec2.describe_addresses().allocation_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_ADDRESSES))?
                    .addresses
                    .unwrap_or_default()
                    .is_empty()
            }
            "launch-template" => {
                let answer = ec2.describe_launch_templates().launch_template_ids(id).send().await;
                !answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_LAUNCH_TEMPLATES))?
                    .launch_templates
                    .unwrap_or_default()
                    .is_empty()
            }
            _ => true,
        })
    }

    /// Things that EC2 shows for an hour after they are gone.
    async fn is_alive_in_ec2(&self, kind: &str, id: &str) -> Result<bool, AwsError> {
        let ec2 = &self.ec2;
        Ok(match kind {
            "instance" => {
                let answer = ec2.describe_instances().instance_ids(id).send().await;
                let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_INSTANCES))?;
                let machines = answer
                    .reservations
                    .unwrap_or_default()
                    .into_iter()
                    .flat_map(|group| group.instances.unwrap_or_default());
                let states = machines.filter_map(|machine| machine.state?.name);
                states.into_iter().any(|state| !matches!(state.as_str(), "terminated" | "shutting-down"))
            }
            "natgateway" => {
                let answer = ec2.describe_nat_gateways().nat_gateway_ids(id).send().await;
                let answer = answer.map_err(AwsError::of(actions::EC2_DESCRIBE_NAT_GATEWAYS))?;
                let states =
                    answer.nat_gateways.unwrap_or_default().into_iter().filter_map(|gateway| gateway.state);
                states.into_iter().any(|state| !matches!(state.as_str(), "deleted" | "deleting"))
            }
            _ => {
                let answer = ec2.describe_vpc_endpoints().vpc_endpoint_ids(id).send().await;
                let endpoints = answer
                    .map_err(AwsError::of(actions::EC2_DESCRIBE_VPC_ENDPOINTS))?
                    .vpc_endpoints
                    .unwrap_or_default();
                let states = endpoints.into_iter().filter_map(|endpoint| endpoint.state);
                states
                    .into_iter()
                    .any(|state| !matches!(state.as_str(), "Deleted" | "deleted" | "Deleting" | "deleting"))
            }
        })
    }
}

/// Services say "there is no such thing" each in its own way.
fn is_missing(error: &AwsError) -> bool {
    let code = error.code.as_deref().unwrap_or_default();
    code.contains("NotFound") || code.ends_with(".Malformed") || code.ends_with(".Unknown")
}
