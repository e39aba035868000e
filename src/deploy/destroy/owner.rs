//! The owner of a network interface, from the description that AWS writes on it.

use crate::aws::Interface;

/// The owner of an interface.
#[must_use]
pub(crate) fn owner_of(interface: &Interface) -> String {
    let text = interface.description.as_str();
    if let Some(instance) = &interface.instance {
        return format!("machine {instance}");
    }
    if let Some(name) = text.strip_prefix("ELB ") {
        let name = name.split('/').nth(1).unwrap_or(name);
        return format!("load balancer {name}");
    }
    if let Some(rest) = text.strip_prefix("EFS mount target for ") {
        return format!("mount target of {}", rest.split_whitespace().next().unwrap_or(rest));
    }
    if let Some(target) = text.strip_prefix("fsmt-") {
        return format!("mount target fsmt-{target}");
    }
    if let Some(function) = text.strip_prefix("AWS Lambda VPC ENI-") {
        return format!("Lambda function {}", function.split('-').next().unwrap_or(function));
    }
    if text.starts_with("Interface for NAT Gateway ") || text.starts_with("nat-") {
        return format!("NAT gateway {}", text.rsplit(' ').next().unwrap_or(text));
    }
    if text.starts_with("VPC Endpoint Interface ") {
        return format!("VPC endpoint {}", text.rsplit(' ').next().unwrap_or(text));
    }
    if text.starts_with("RDSNetworkInterface") {
        return "an RDS database".to_owned();
    }
    if text.starts_with("aws-K8S-") {
        return "a pod network of Kubernetes".to_owned();
    }
    if text.is_empty() { "an unknown owner".to_owned() } else { format!("\"{text}\"") }
}

#[cfg(test)]
mod tests {
    use super::owner_of;
    use crate::aws::Interface;

    fn owner(description: &str) -> String {
        owner_of(&Interface {
            id: "eni-1".to_owned(),
            description: description.to_owned(),
            free: false,
            subnet: String::new(),
            security_groups: Vec::new(),
            instance: None,
            tags: std::collections::BTreeMap::new(),
        })
    }

    #[test]
    fn aws_writes_the_owner_on_the_interface() {
        let table = [
            ("ELB net/a1b2c3/50dc6c495c0c9188", "load balancer a1b2c3"),
            ("ELB a1b2c3d4", "load balancer a1b2c3d4"),
            ("EFS mount target for fs-0123 (fsmt-0456)", "mount target of fs-0123"),
            ("AWS Lambda VPC ENI-report-1234", "Lambda function report"),
            ("Interface for NAT Gateway nat-0abc", "NAT gateway nat-0abc"),
            ("VPC Endpoint Interface vpce-0abc", "VPC endpoint vpce-0abc"),
            ("RDSNetworkInterface", "an RDS database"),
            ("my own", "\"my own\""),
            ("", "an unknown owner"),
        ];
        for (description, expected) in table {
            assert_eq!(owner(description), expected);
        }
    }
}
