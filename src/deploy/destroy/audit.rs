//! Finds what is left of a cluster, by tag and by name, and confirms each resource with the service it belongs to.

use super::deletion_command::{is_backup, leftover_of_arn, snapshot_deletion};
use super::found::FoundResources;
use super::scope::DestroyScope;
use super::snapshot_rule::leftover_rule;
use crate::aws::{AwsError, Clients};
use crate::deploy::event::{Leftover, Resource, ResourceKind};
use crate::plural::count_of;
use crate::well_known::internal_domain;

/// A comparison of what exists now with what a destroy meant to keep.
pub(crate) struct DestroyAudit<'a> {
    /// AWS.
    pub(crate) clients: &'a Clients,
    /// The scope of the destroy.
    pub(crate) scope: &'a DestroyScope,
    /// What exists now.
    pub(crate) now: &'a FoundResources,
}

impl DestroyAudit<'_> {
    /// What is left of the cluster that the plan did not mean to keep.
    pub(crate) async fn find_leftovers(&self) -> Result<Vec<Leftover>, AwsError> {
        let mut left = self.find_stacks();
        left.extend(self.find_tagged().await?);
        left.extend(self.find_named().await?);
        // Machines that are left need their boot configs and the grant.
        if !self.now.live.has_machines() {
            left.extend(self.find_uploads());
        }
        if self.scope.options.delete_data {
            left.extend(self.find_data().await?);
        }
        left.sort_by(|one, other| one.resource.cmp(&other.resource));
        left.dedup_by(|one, other| one.resource == other.resource);
        Ok(left)
    }

    fn find_stacks(&self) -> Vec<Leftover> {
        let region = &self.scope.target.region;
        let stacks = self.now.live.stacks.values().map(|live| &live.stack);
        let left = stacks.map(|stack| Leftover {
            resource: Resource::new(ResourceKind::Stack, &stack.name),
            why: Some(stack.status.to_string()),
            fix: format!("aws cloudformation delete-stack --stack-name {} --region {region}", stack.name),
        });
        left.collect()
    }

    /// What carries a tag of the cluster. The search lists resources for a while after they are deleted, so each is confirmed.
    async fn find_tagged(&self) -> Result<Vec<Leftover>, AwsError> {
        let target = &self.scope.target;
        let (key, value) = target.tag();
        let mut arns = self.clients.tagged(key, value).await?;
        arns.extend(self.clients.tagged(&target.kubernetes_tag(), "owned").await?);
        arns.sort();
        arns.dedup();
        let kept = self.kept_ids();
        let mut left = Vec::new();
        for arn in arns {
            let id = arn.rsplit(['/', ':']).next().unwrap_or(&arn).to_owned();
            // What a stack holds that is left is left with the stack.
            let in_live_stacks = self.now.stacks.contains(&id) || self.now.stacks.contains(&arn);
            if kept.contains(&id) || in_live_stacks || arn.contains(":cloudformation:") || is_backup(&arn) {
                continue;
            }
            if self.clients.exists(&arn).await? {
                left.push(leftover_of_arn(&arn, &target.region));
            }
        }
        Ok(left)
    }

    /// What the search by tag does not list: Auto Scaling groups, and hosted zones, which have no region.
    async fn find_named(&self) -> Result<Vec<Leftover>, AwsError> {
        let (target, now) = (&self.scope.target, self.now);
        let region = target.region.as_str();
        let groups = now.live.groups.iter().filter(|group| !now.stacks.contains(&group.name));
        let groups = groups.map(|group| Leftover {
            resource: Resource::new(ResourceKind::AutoScalingGroup, &group.name),
            why: None,
            fix: format!(
                "aws autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name {} --region {region}",
                group.name
            ),
        });
        let mut left: Vec<Leftover> = groups.collect();
        let name = internal_domain(&target.name);
        let mut zones = self.clients.private_hosted_zones(&name, region).await?;
        zones.retain(|zone| !now.stacks.contains(&zone.id));
        left.extend(zones.into_iter().map(|zone| Leftover {
            fix: format!("aws route53 delete-hosted-zone --id {}", zone.id),
            why: Some(zone.name),
            resource: Resource::new(ResourceKind::PrivateHostedZone, zone.id),
        }));
        Ok(left)
    }

    fn find_uploads(&self) -> Vec<Leftover> {
        let stored = self.now.stored.iter().filter(|stored| !stored.boot.is_empty());
        let objects = stored.map(|stored| Leftover {
            resource: Resource::new(ResourceKind::UploadedAssets, stored.address()),
            why: Some(count_of(stored.boot.len(), "object")),
            fix: "run `infra destroy` again".to_owned(),
        });
        let target = &self.scope.target;
        let grant = self.now.grant.as_ref().zip(target.kms_key.as_ref()).map(|(grant, key)| Leftover {
            resource: Resource::new(ResourceKind::KmsGrant, &grant.id),
            why: None,
            fix: format!(
                "aws kms revoke-grant --key-id {key} --grant-id {} --region {}",
                grant.id, target.region
            ),
        });
        objects.chain(grant).collect()
    }

    async fn find_data(&self) -> Result<Vec<Leftover>, AwsError> {
        let target = &self.scope.target;
        let stored = self.now.stored.iter().filter(|stored| !stored.backups.is_empty());
        let objects = stored.map(|stored| Leftover {
            resource: Resource::new(ResourceKind::EtcdSnapshots, stored.snapshots.address()),
            why: Some(count_of(stored.backups.len(), "object")),
            fix: "run `infra destroy --delete-data` again".to_owned(),
        });
        let volumes = &self.scope.found.stacks.volumes;
        let snapshots = self.clients.snapshots_of(volumes, target.tag()).await?.into_iter();
        let snapshots = snapshots.map(|snapshot| Leftover {
            fix: snapshot_deletion(&snapshot.id, &target.region),
            why: None,
            resource: Resource::new(ResourceKind::DiskSnapshot, snapshot.id),
        });
        let rules = self.now.stored.iter().filter(|stored| stored.has_snapshot_rule);
        let rules = rules.map(|stored| leftover_rule(&stored.snapshots, None));
        Ok(objects.chain(rules).chain(snapshots).collect())
    }

    /// The ids that the plan said would be kept.
    fn kept_ids(&self) -> Vec<String> {
        let (before, now, options) = (&self.scope.found, self.now, self.scope.options);
        let mut kept: Vec<String> = Vec::new();
        let file_systems = before.data.file_systems.iter().chain(&now.data.file_systems);
        let staying = file_systems.filter(|system| !system.is_own() || !options.delete_data);
        kept.extend(staying.map(|system| system.id.clone()));
        // A VPC that was there before the cluster may carry any tag.
        kept.extend(before.vpc.iter().filter(|vpc| vpc.is_adopted).map(|vpc| vpc.id.clone()));
        let outputs = before.live.outputs().into_values().filter(|id| id.starts_with("subnet-"));
        kept.extend(outputs.filter(|id| !before.stacks.contains(id)));
        kept.extend(before.created_keys.iter().chain(&now.created_keys).map(|key| key.id().to_owned()));
        if !options.delete_data {
            kept.extend(now.data.snapshots.iter().map(|snapshot| snapshot.id.clone()));
        }
        kept
    }
}
