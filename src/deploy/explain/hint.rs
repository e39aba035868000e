//! AWS's messages into what the user can do next.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::deploy::event::{FailureKind, Hint};
use crate::document::parse_embedded_table;

static TABLE: LazyLock<Vec<HintEntry>> = LazyLock::new(|| parse_embedded_table(include_str!("hints.yaml")));

const ACTION: &str = "{action}";
const QUOTA: &str = "{quota}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HintEntry {
    any: Vec<Vec<String>>,
    kind: FailureKind,
    hint: String,
    #[serde(default)]
    quota: Option<String>,
}

impl HintEntry {
    fn fits(&self, lower_case: &str, action: Option<&str>) -> bool {
        let occurs = |part: &String| lower_case.contains(&part.to_ascii_lowercase());
        (action.is_some() || !self.hint.contains(ACTION))
            && self.any.iter().any(|parts| parts.iter().all(occurs))
    }

    fn text(&self, action: Option<&str>) -> String {
        self.hint
            .replace(ACTION, action.unwrap_or_default())
            .replace(QUOTA, self.quota.as_deref().unwrap_or_default())
    }
}

/// What to do about a resource's status reason, a scaling activity's status message, or the code and message of a refused
/// call. AWS's messages about quotas name no machine; with its type behind the reason, after a space, the hint names the quota.
#[must_use]
pub(crate) fn hint_for(reason: &str) -> Option<Hint> {
    let (lower_case, action) = (reason.to_ascii_lowercase(), action_in(reason));
    let entry = TABLE.iter().find(|entry| entry.fits(&lower_case, action))?;
    Some(Hint { kind: entry.kind, text: entry.text(action) })
}

/// The permission that a refusal names, as in `is not authorized to perform: ec2:CreateVpc on resource`.
fn action_in(reason: &str) -> Option<&str> {
    reason.split("perform").skip(1).find_map(|rest| {
        let word = rest.trim_start_matches(':').split_whitespace().next()?;
        let word = word.trim_matches(|character: char| !character.is_ascii_alphanumeric());
        let (service, _) = word.split_once(':')?;
        (service != "arn").then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FailureKind, TABLE, action_in, hint_for};

    /// What AWS printed, behind the kind and a part of the hint that it must give.
    const MESSAGES: &str = r#"
other | minutes to hours | PendingVerification: Your request for accessing resources in this region is being validated, and you will not be able to launch additional resources in this region until the validation is complete. We will notify you by email once your request has been validated.
other | minutes to hours | AccessDeniedException: Your account is currently being verified
permission | AWS Support | Blocked: This account is currently blocked and not recognized as a valid account. Please contact aws-verification@amazon.com if you have questions.
permission | payment method | OptInRequired: You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe.
service-linked-role | spot.amazonaws.com | AuthFailure.ServiceLinkedRoleCreationNotPermitted: The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.
service-linked-role | name autoscaling.amazonaws.com | User: arn:aws:iam::111122223333:user/ada is not authorized to perform: iam:CreateServiceLinkedRole on resource: arn:aws:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling
service-linked-role | name elasticloadbalancing.amazonaws.com | AccessDenied: User: arn:aws:sts::111122223333:assumed-role/deploy/ada is not authorized to perform: iam:CreateServiceLinkedRole on resource: arn:aws:iam::111122223333:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing
service-linked-role | iam:CreateServiceLinkedRole | AccessDeniedException: Caller does not have permissions to create a Service Linked Role
key | encryptDisksWithKmsKey | Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state
key | AWSServiceRoleForAutoScaling | Launching a new EC2 instance: i-00b46f05db2176074.  Status Reason: Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Client.InternalError: Client error on launch
key | default EBS key | One or more of the attached Amazon EBS volumes are encrypted with an inaccessible AWS KMS key.
key | allow kms:GenerateDataKeyWithoutPlaintext | User: arn:aws:sts::111122223333:assumed-role/AWSServiceRoleForAutoScaling/AutoScaling is not authorized to perform: kms:GenerateDataKeyWithoutPlaintext on this resource because the resource does not exist in this Region, no resource-based policies allow access, or a resource-based policy explicitly denies access
key | enable the key | DisabledException: arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab is disabled.
key | own ARN | NotFoundException: Key 'arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab' does not exist
key | keyName | InvalidKeyPair.NotFound: The key pair 'my-key' does not exist
image | --upgrade-os | The image id 'ami-4edb0327' does not exist. Launching EC2 instance failed.
image | --upgrade-os | You must use a valid fully-formed launch template. The image id '[ami-062c116e449466e7f]' does not exist
image | --upgrade-os | AMI ami-4edb0327 is pending, and cannot be run. Launching EC2 instance failed.
image | amd64 | The requested instance type's architecture (i386) does not match the architecture in the manifest for ami-6622f00f (x86_64). Launching ec2 instance failed.
image | Nitro | EBS block device mappings not supported for instance-store AMIs.
image | --upgrade-os | Enhanced networking with the Elastic Network Adapter (ENA) is required for the 'm5.large' instance type. Ensure that you are using an AMI that is enabled for ENA.
capacity | enlarge it | ReservationCapacityExceeded: The requested reservation does not have sufficient compatible and available capacity for this request.
capacity | once it is | InvalidCapacityReservationState.PendingActivation: Your Capacity Block is not active yet.
capacity | must name a reservation | InvalidCapacityReservationId.NotFound: The capacity reservation ID 'cr-0123456789abcdef0' does not exist
capacity | placementGroup | Placement groups may not be used with instances of type 'm1.large'. Launching EC2 instance failed.
capacity | remove spot | There is no Spot capacity available that matches your request. Launching EC2 instance failed.
capacity | remove spot | Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. Please adjust your request and try again. Launching EC2 instance failed.
capacity | instanceTypes | We currently do not have sufficient g5.xlarge capacity in the Availability Zone you requested (us-west-2a). Our system will be working on provisioning additional capacity. You can currently get g5.xlarge capacity by not specifying an Availability Zone in your request or choosing us-west-2b, us-west-2c. Launching EC2 instance failed.
capacity | remove it from | You must use a valid fully-formed launch template. Your requested instance type (m5.2xlarge) is not supported in your requested Availability Zone (us-east-1e). Please retry your request by not specifying an Availability Zone or choosing us-east-1a, us-east-1b.
capacity | validate --online | You must use a valid fully-formed launch template. Invalid value 'm5.medium' for InstanceType. (Service: AmazonAutoScaling; Status Code: 400; Error Code: ValidationError; Request ID: 7f85672c-22d7-4e97-9fe7-e630dc5e6ebb; Proxy: null)
quota | L-417A185B (on-demand P | You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. Launching EC2 instance failed. p4d.24xlarge
quota | L-DB2E81BA (on-demand G | You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. Launching EC2 instance failed. g5.xlarge
quota | L-1216C47A (on-demand standard | You have requested more vCPU capacity than your current vCPU limit of 16 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. t3.large
quota | L-417A185B for P | VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.
quota | L-7212CCBC (spot P | Max spot instance count exceeded. Launching EC2 instance failed. p3.8xlarge
quota | L-3819A6DF (spot G | Max spot instance count exceeded. Launching EC2 instance failed. g4dn.2xlarge
quota | L-34B43A08 (spot standard | Max spot instance count exceeded. Launching EC2 instance failed. m5.large
quota | L-34B43A08 for most | Max spot instance count exceeded. Placing Spot instance request failed.
quota | L-34B43A08 for most | Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded. Launching EC2 instance failed.
quota | AWS Support | MaxFleetCountExceeded: You've reached your quota for maximum Fleet Requests for this account.
quota | L-D18FCD1D | VolumeLimitExceeded: You have exceeded your maximum gp2 storage limit of 86 TiB in this region. Please contact AWS Support to request an Elastic Block Store service limit increase.
quota | L-7A658B76 | Client.VolumeLimitExceeded: The limit on the number of EBS volumes or total storage was exceeded. Decrease usage or request an increase in your limits.
quota | IOPS | MaxIOPSLimitExceeded: You've reached the limit on your IOPS usage for the AWS Region.
quota | snapshots | AttachmentLimitExceeded: The maximum number of attachments to this instance has been reached.
limit | L-0263D0A3 | Resource handler returned message: "The maximum number of addresses has been reached. (Service: Ec2, Status Code: 400, Request ID: 6b8cf3d3-1afc-40de-91d7-4ac4c55bfc32)" (RequestToken: 5f2495db-493f-e12b-ebf1-187d26148fde, HandlerErrorCode: GeneralServiceException)
limit | L-F678F1CE | Resource handler returned message: "The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400, Request ID: 5ce9e2b3-ab97-48ae-9110-21df5e97e9b5)" (RequestToken: 79d65bb7-1d80-c629-18dc-b61fe9935538, HandlerErrorCode: GeneralServiceException)
limit | L-A4707A72 | The maximum number of internet gateways has been reached. (Service: AmazonEC2; Status Code: 400; Error Code: InternetGatewayLimitExceeded)
limit | nat: shared | NatGatewayLimitExceeded: Performing this operation would exceed the limit of 5 NAT gateways
limit | another VPC | SubnetLimitExceeded: The maximum number of subnets has been reached.
limit | L-DF5E4CA3 | NetworkInterfaceLimitExceeded: You have reached the maximum number of network interfaces that you can create.
limit | L-2AFB9258 | The maximum number of security groups per interface has been reached.
limit | sshAllowedCIDRs | Resource handler returned message: "The maximum number of rules per security group has been reached. (Service: Ec2, Status Code: 400, Request ID: 3ab7f4c4-cdea-4ada-97fe-f650b116f7f1)" (RequestToken: ff9bc132-d76c-50cd-9f8c-41db329f01d1, HandlerErrorCode: ServiceLimitExceeded)
limit | five security groups | SecurityGroupLimitExceeded: the number of security groups specified for the mount target is greater than five
limit | L-E79EC296 | SecurityGroupLimitExceeded: The maximum number of security groups for VPC 'vpc-3311ce57' has been reached.
limit | L-69A177A2 | TooManyLoadBalancers: The maximum number of load balancers has been reached
limit | L-B22855CB | TooManyTargetGroups: You've reached the limit on the number of target groups for your AWS account.
limit | targets or listeners | TooManyTargets: The maximum number of targets per load balancer '2000' has been reached on load balancer 'arn:aws:elasticloadbalancing:eu-west-1:111122223333:loadbalancer/net/a00750083f5d246adb186f4de33ea231/258d33324f0cb6d7'
limit | storage.efs.fileSystemId | Error creating EFS file system: FileSystemLimitExceeded: status code: 403
limit | L-FE177D64 | LimitExceeded: Cannot exceed quota for RolesPerAccount: 1000
limit | L-6E65F664 | LimitExceeded: Cannot exceed quota for InstanceProfilesPerAccount: 1000
limit | managedPolicyArns | LimitExceeded: Cannot exceed quota for PoliciesPerRole: 10
limit | L-4EA4796A | TooManyHostedZones: Limits Exceeded: MAX_HOSTED_ZONES_BY_OWNER - Cannot create more hosted zones.
limit | placement groups | PlacementGroupLimitExceeded: You've reached the limit on the number of placement groups that you can have.
limit | Auto Scaling groups | LimitExceeded: You have already reached your maximum limit for AutoScalingGroups
limit | L-0485CB21 | LimitExceededException: Limit for stack has been exceeded
limit | 50 tags | TagLimitExceeded: The maximum number of Tags for a resource has been reached.
file-system | createMountTargets | mount target already exists in this AZ (Service: AmazonElasticFileSystem; Status Code: 409; Error Code: MountTargetConflict; Request ID: e378fd6a-8cc2-48f8-bcbc-ba0caebd155a; Proxy: null)
file-system | one VPC only | MountTargetConflict: requested subnet for new mount target is not in the same VPC as existing mount targets
file-system | EFS is not available | UnsupportedAvailabilityZone: The requested Amazon EFS functionality is not available in the specified Availability Zone.
file-system | fileSystemId | FileSystemNotFound: File system 'fs-0123456789abcdef0' does not exist.
file-system | wait a minute | FileSystemInUse: The file system has mount targets.
file-system | throughputMode | ThroughputLimitExceeded: The throughput mode or amount of provisioned throughput can't be changed because the throughput limit of 1024 MiB/s has been reached.
permission | organization forbids ec2:CreateNatGateway | UnauthorizedOperation: You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/deploy/ada is not authorized to perform: ec2:CreateNatGateway on resource: arn:aws:ec2:eu-west-1:111122223333:natgateway/* with an explicit deny in a service control policy: arn:aws:organizations::111122223333:policy/o-ysrrabz20z/service_control_policy/p-ddxnpgbm
permission | organization forbids this | UnauthorizedOperation: You are not authorized to perform this operation with an explicit deny in a service control policy
permission | boundary does not allow ec2:RunInstances | User: arn:aws:sts::111122223333:assumed-role/deploy/ada is not authorized to perform: ec2:RunInstances on resource: arn:aws:ec2:eu-west-1:111122223333:instance/* because no permissions boundary allows the ec2:RunInstances action
permission | endpoint's policy | User: arn:aws:iam::111122223333:user/ada is not authorized to perform: s3:PutObject on resource: arn:aws:s3:::my-bucket/a because no VPC endpoint policy allows the s3:PutObject action
permission | set permissionsBoundaryArn | API: iam:CreateRole User: arn:aws:iam::111122223333:user/ada is not authorized to perform: iam:CreateRole on resource: arn:aws:iam::111122223333:role/paddle-pool-gpu-NodeRole-1ABC because no identity-based policy allows the iam:CreateRole action
permission | iam:PassRole for | User: arn:aws:iam::111122223333:user/ada is not authorized to perform: iam:PassRole on resource: arn:aws:iam::111122223333:role/gpu-nodes because no identity-based policy allows the iam:PassRole action
permission | not tag it | Encountered a permissions error performing a tagging operation, please add required tag permissions. See https://repost.aws/knowledge-center/cloudformation-tagging-permission-error for how to resolve.
permission | allow elasticfilesystem:CreateFileSystem; | AccessDeniedException: User: arn:aws:iam::111122223333:user/ada is not authorized to perform: elasticfilesystem:CreateFileSystem on the specified resource
permission | decode-authorization-message | UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: 4GIOHlTkIaWHQD0Q0m6XSnuUMCm
permission | lacks a permission | You are not authorized to perform this operation. (Service: Ec2, Status Code: 403, Request ID: 1b4ed22a-9d3e-48cb-95a2-437242a4cdcd)
permission | revert that change | Action denied by stack policy: Statement [#1] does not allow [Update:Replace] for resource [LogicalResourceId/VPC];
credentials | log in again | ExpiredToken: The security token included in the request is expired
credentials | clock | SignatureDoesNotMatch: Signature not yet current: 20260818T154615Z is still later than 20260818T153115Z
credentials | get-caller-identity | AuthFailure: AWS was not able to validate the provided access credentials
name-taken | externalDNSName | InvalidChangeBatch: [Tried to create resource record set [name='api.jh-stg-2405-2.n6b3.s1.devshift.org.'type='A'] but it already exists]
network | dns.hostedZoneId | [RRSet with DNS name www.example.com. is not permitted in zone example.org.]
dependency | by hand | [Tried to delete resource record set [name='api.example.com.', type='A'] but the values provided do not match the current values]
network | public hosted zone | NoSuchHostedZone: No hosted zone found with ID: Z0GLN2OXWU6NXVLK4MRVZ
dependency | delete the foreign records | HostedZoneNotEmpty: The specified hosted zone contains non-required resource record sets and so cannot be deleted.
network | another private hosted zone | A conflicting domain is already associated with the given VPC or Delegation Set.
network | vpcCIDR | InvalidSubnet.Conflict: The CIDR '10.0.1.0/24' conflicts with another subnet
network | no such addresses | InvalidSubnet.Range: The CIDR '10.1.0.0/24' is invalid.
network | no free addresses | InsufficientFreeAddressesInSubnet: The specified subnet does not have enough free addresses to satisfy the request.
network | network.existing | InvalidSubnetID.NotFound (Service: AmazonElasticLoadBalancingV2; Status Code: 400; Error Code: SubnetNotFound; Request ID: 0dd50b32-2f91-11e9-9699-fff965ac6897)
network | one subnet of each availability zone | A load balancer cannot be attached to multiple subnets in the same Availability Zone (Service: AmazonElasticLoadBalancing; Status Code: 400; Error Code: InvalidConfigurationRequest; Request ID: 42f83e69-3a6c-40ed-8f05-34c388618f2f; Proxy: null)
network | remove it from availabilityZones | The following Availability Zones us-west-1a cannot be associated with a load balancer. Please try a different Availability Zone. (Service: AmazonElasticLoadBalancing; Status Code: 400; Error Code: ValidationError; Request ID: 93e9babc-7135-4d02-b79a-8cfbc27642b2; Proxy: null)
network | internet gateway | Network vpc-0123456789abcdef0 has no internet gateway attached
network | rule already | InvalidPermission.Duplicate: the specified rule "peer: 10.0.0.0/8, TCP, from port: 22, to port: 22, ALLOW" already exists
dependency | public address | DependencyViolation: Network vpc-065495b6de9af9fb1 has some mapped public address(es). Please unmap those public address(es) before detaching the gateway.
dependency | network interface | InvalidNetworkInterface.InUse: The specified interface is currently in use and cannot be deleted or attached to another instance.
dependency | the disk | VolumeInUse: vol-0123456789abcdef0 is already attached to an instance
dependency | uses the address | Elastic IP address eipalloc-0fbd644b4ab043827 is already associated
dependency | rollback --skip | resource sg-0123456789abcdef0 has a dependent object (Service: AmazonEC2; Status Code: 400; Error Code: DependencyViolation; Request ID: 967081d6-2f8f-4db4-8db8-b4b275b2e417)
dependency | in order | Export demo-network-VpcId cannot be deleted as it is in use by demo-control-plane
dependency | that this one needs | No export named demo-network-VpcId found.
dependency | moment | ValidationError: You must use a valid fully-formed launch template. Value (init-eks-template) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name
name-taken | s3URI | BucketAlreadyExists: The requested bucket name is not available. The bucket namespace is shared by all users of the system.
name-taken | stack in the message | gpu-nodes already exists in stack arn:aws:cloudformation:us-east-1:111122223333:stack/demo/d3e21770-8964-11f0-a4fe-0affde17201b
name-taken | own name | CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename gpu-nodes and update the stack again.
name-taken | older cluster | Resource handler returned message: "Resource of type 'AWS::IAM::Role' with identifier 'gpu-nodes' already exists." (RequestToken: 36086107-14b9-bbbe-fed4-9d8496c2579f, HandlerErrorCode: AlreadyExists)
dependency | infra rollback | Stack:arn:aws:cloudformation:us-east-1:111122223333:stack/demo/4523cec0-6cf4-11f0-82c0-022df240377b is in UPDATE_ROLLBACK_FAILED state and can not be updated.
other | turn the protection off | Stack [demo] cannot be deleted while TerminationProtection is enabled
dependency | is empty | Stack:arn:aws:cloudformation:eu-west-1:123456789012:stack/blank520/5270ab20-d557-11ed-afb2-0a14943d5521 is in ROLLBACK_COMPLETE state and can not be updated.
dependency | infra status | Stack:arn:aws:cloudformation:eu-west-1:123456789012:stack/demo/5270ab20-d557-11ed-afb2-0a14943d5521 is in UPDATE_IN_PROGRESS state and can not be updated.
dependency | `infra up` creates it | ValidationError: Stack with id demo does not exist
template | report it | Required property [PolicyDocument] not found (PROPERTY_VALIDATION)
template | report it | "10.0.0.0/33" already exists, is not authorized (PROPERTY_VALIDATION)
permission | whoever maintains | Encrypted must be true; it already exists (Hook Acme::Ec2::Guard)
name-taken | older cluster | Resource of type 'AWS::IAM::Role' with identifier 'gpu-nodes' already exists. (NAME_CONFLICT_VALIDATION)
template | did not allow | InsufficientCapabilitiesException: Requires capabilities : [CAPABILITY_NAMED_IAM]
template | different versions | ValidationError: Parameters: [AdminEmail] do not exist in the template
template | report it | Template format error: Unresolved resource dependencies [Vpc] in the Resources block of the template
template | outside of its stack | InvalidLaunchTemplateId.NotFound: The specified launch template, with template ID lt-0861a0baf99fa9fee, does not exist.
template | rest of the message | You must use a valid fully-formed launch template. The parameter groupName cannot be used with the parameter subnet
signal | its start failed | Received 1 FAILURE signal(s) out of 1.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement
signal | infra logs NODE | Received 0 SUCCESS signal(s) out of 1.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement
signal | infra logs NODE | Failed to receive 1 resource signal(s) for the current batch.  Each resource signal timeout is counted as a FAILURE.
signal | shut itself down | Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Client.InstanceInitiatedShutdown: Instance initiated shutdown
other | retries | Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Server.InternalError: Internal error on launch
signal | infra status | Group did not stabilize. {current/minimum/maximum group size: 0/1/1}.
throttled | fewer calls | Rate exceeded (Service: AmazonCloudFormation; Status Code: 400; Error Code: Throttling; Request ID: 863467d3-5018-47c7-a299-48574c4a4dd7)
other | in time | Resource timed out waiting for creation of physical resource
other | in time | Resource handler returned message: "Exceeded attempts to wait" (RequestToken: 36086107-14b9-bbbe-fed4-9d8496c2579f, HandlerErrorCode: NotStabilized)
other | internal error | ServiceUnavailable: The service is unavailable. Please try again shortly.
"#;

    fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        MESSAGES.trim().lines().filter_map(|line| {
            let (kind, rest) = line.split_once(" | ")?;
            let (part, message) = rest.split_once(" | ")?;
            Some((kind, part, message))
        })
    }

    #[test]
    fn every_message_gives_its_hint() {
        assert_eq!(rows().count(), MESSAGES.trim().lines().count());
        for (kind, part, message) in rows() {
            let hint = hint_for(message);
            assert_eq!(hint.as_ref().map(|hint| json!(hint.kind)), Some(json!(kind)), "{message}");
            assert!(hint.as_ref().is_some_and(|hint| hint.text.contains(part)), "{message}\n{hint:?}");
        }
    }

    #[test]
    fn every_entry_has_a_message_that_reaches_it() {
        let mut reached = vec![false; TABLE.len()];
        for (_, _, message) in rows() {
            let (lower_case, action) = (message.to_ascii_lowercase(), action_in(message));
            if let Some(index) = TABLE.iter().position(|entry| entry.fits(&lower_case, action)) {
                reached[index] = true;
            }
        }
        let missed: Vec<&str> = TABLE
            .iter()
            .zip(&reached)
            .filter(|(_, reached)| !**reached)
            .map(|(entry, _)| &*entry.hint)
            .collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn hints_are_written_alike_and_leave_no_placeholder() {
        for entry in TABLE.iter() {
            let text = entry.text(Some("ec2:RunInstances"));
            assert_eq!(entry.quota.is_some(), entry.hint.contains("{quota}"), "{text}");
            assert!(!text.contains(['{', '}', '\n']) && !text.ends_with('.'), "{text}");
            assert!(entry.any.iter().all(|parts| parts.iter().any(|part| !part.trim().is_empty())), "{text}");
            assert!(
                text.starts_with("AWS")
                    || text.starts_with("EC2")
                    || text.starts_with("EFS")
                    || text.starts_with("IAM")
                    || text.starts_with("CloudFormation")
                    || !text.starts_with(|first: char| first.is_ascii_uppercase()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_only_follows_from_another_failure_gives_no_hint() {
        for message in
            ["", "Resource creation cancelled", "The following resource(s) failed to create: [Network]. "]
        {
            assert_eq!(hint_for(message), None, "{message}");
        }
    }

    #[test]
    fn a_permission_is_read_from_the_middle_of_a_message() {
        let refused = |rest: &str| format!("You are not authorized to perform this operation. {rest}");
        assert_eq!(
            action_in(&refused("User is not authorized to perform: ec2:RunInstances.")),
            Some("ec2:RunInstances")
        );
        assert_eq!(
            action_in("not authorized perform iam:CreateServiceLinkedRole"),
            Some("iam:CreateServiceLinkedRole")
        );
        assert_eq!(action_in(&refused("")), None);
        assert_eq!(action_in("error performing a tagging operation: see arn:aws:iam::1:role/a"), None);
    }

    #[test]
    fn a_wait_ends_for_a_failure_that_does_not_fix_itself() {
        use FailureKind::{Capacity, Key, Other, Quota, Signal, Throttled};
        assert!([Capacity, Quota, Key].into_iter().all(FailureKind::is_permanent));
        assert!(![Signal, Throttled, Other].into_iter().any(FailureKind::is_permanent));
    }
}
