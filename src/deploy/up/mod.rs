//! `infra up` after the user has agreed: uploads, stacks, public name, nodes.
//!
//! In: `Prepared`, `Inputs`, options. Out: a cluster that is ready, or the one failure that stopped it.

mod arriving_nodes;
pub(crate) mod bucket;
pub(crate) mod disk_grant;
pub(crate) mod public_record;
pub(crate) mod readiness;
mod secret_encryption;
mod snapshot_rule;
pub(crate) mod upload;

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::error::DeployError;
use super::event::Event;
use super::explain::hint::hint_for;
use super::inputs::Inputs;
use super::inputs::asset_store::AssetStore;
use super::machines::az_rebalance::suspend_az_rebalance;
use super::machines::expected_nodes::ExpectedNodes;
use super::machines::pool_launches::PoolLaunches;
use super::machines::pool_limits::{prepare_limits, restore_limits};
use super::plan::preparation::{PlanOptions, Prepared};
use super::run::Run;
use super::stack::bring_up::ChangeTerms;
use super::stack::concurrent_deletion::{check_all_exist, refuse_while_destroyed};
use super::stack::delete::delete_stack;
use super::stack::graph::{Outcome, bring_up_all};
use super::state::desired::DesiredStack;
use super::state::live::LiveCluster;
use super::state::pool_size::PoolSize;
use super::state::public_name::load_balancer;
use crate::aws::{Alias, Cause};
use crate::blueprint::{Role, StackPart};
use crate::kube::{Address, ApiServer};
use crate::outcome::Explain;
use crate::plural::count_of;
use crate::render::{BootObject, boot_objects};
use crate::waiting::WaitEnd;
use arriving_nodes::while_nodes_arrive;
use bucket::ensure_bucket;
use disk_grant::ensure_disk_grant;
use public_record::{delete_record_of, point_record_at};
use readiness::{Reached, ReadinessWait};
use secret_encryption::{drops_encryption_key, encrypt_secrets_again, has_previous_encryption_key};
use snapshot_rule::ensure_snapshot_rule;
use upload::upload_boot_objects;

/// How a cluster is brought up.
#[derive(Clone, Debug)]
pub(crate) struct UpOptions {
    /// Whether a missing bucket is created.
    pub create_bucket: bool,
    /// Whether an existing record that points elsewhere is replaced.
    pub adopt_record: bool,
    /// What to wait for.
    pub wait: WaitFor,
    /// Where the API server is, instead of behind its load balancer.
    pub api_address: Option<Address>,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Nothing that AWS does without this run.
    None,
    /// The stacks.
    Stacks,
    /// The stacks and every node.
    Nodes,
}

/// What the user agreed to, beyond the changes that were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Consent {
    /// Whether pools that are no longer in cluster.yaml are deleted.
    pub delete_dropped_pools: bool,
}

/// One run of `infra up`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Up<'a> {
    /// The context of the run.
    pub run: &'a Run,
    /// What the cluster is deployed from.
    pub inputs: &'a Inputs<'a>,
    /// How the cluster is brought up.
    pub options: &'a UpOptions,
}

impl Up<'_> {
    /// Applies what was prepared.
    pub(crate) async fn apply(&self, prepared: &Prepared, consent: Consent) -> Result<(), DeployError> {
        let Self { run, inputs, options } = *self;
        let Prepared { live, desired, plan, store, options: planned } = prepared;
        let cluster = &inputs.blueprint.cluster;
        refuse_while_destroyed(&run.clients, desired, live).await?;
        if planned.pool.is_none() && drops_encryption_key(inputs.credentials, live) {
            self.encrypt_secrets_before_drop(live).await?;
        }
        if options.create_bucket {
            ensure_bucket(run, cluster, store.bucket()).await?;
        }
        run.progress.stage("uploading machine configurations");
        let configs = inputs.assets.boot_configs.iter().filter(|config| is_wanted(&config.role, planned));
        let objects = boot_objects(cluster.name.as_str(), configs);
        let uploaded = upload_boot_objects(run, store, &objects).await?;
        run.progress.note(format!("{uploaded} of {} objects were new", objects.len()));
        ensure_disk_grant(run, cluster).await?;
        if planned.pool.is_none() {
            ensure_snapshot_rule(run, &inputs.s3_uri, cluster.name.as_str()).await?;
        }
        let sizes: Vec<&PoolSize> = desired.iter().filter_map(DesiredStack::pool_size).collect();
        prepare_limits(run, &sizes, live).await?;
        run.progress.stage("bringing stacks up");
        let terms =
            ChangeTerms { allowed: planned.allow_replace.clone(), waits: options.wait != WaitFor::None };
        let names: Vec<String> = desired.iter().map(|stack| stack.name.clone()).collect();
        let upload_again = async |part: &StackPart| upload_deleted_again(run, store, &objects, part).await;
        let (settled, outputs) = watch::channel(live.outputs());
        let bringing = bring_up_all(run, store, desired.clone(), live, &terms, upload_again, &settled);
        let connect = |target: &Alias| self.api_server(target).ok();
        let mut outcome = Box::pin(while_nodes_arrive(run, outputs, connect, bringing)).await;
        if let Some(failure) = outcome.failure.take() {
            self.point_public_name_despite(&failure, prepared, &outcome).await;
            return Err(failure);
        }
        let mut pruned = 0;
        if consent.delete_dropped_pools {
            for gone in plan.deletions().filter_map(|stack| live.stacks.get_key_value(&stack.part)) {
                if let Some(stuck) = delete_stack(run, gone.0, &gone.1.stack).await? {
                    return Err(stuck.into_error());
                }
                pruned += 1;
            }
        }
        let groups = run.clients.groups_of_cluster(cluster.name.as_str()).await?;
        let now = LiveCluster { groups, ..LiveCluster::default() };
        let is_resized = restore_limits(run, &sizes, live, &now).await?;
        suspend_az_rebalance(run, &now).await?;
        if outcome.changed.is_empty() && pruned == 0 && !is_resized {
            run.progress.note("no stack had to change");
        }
        let mut end = self.finish(prepared, &outcome, &names).await;
        if end.is_ok() {
            end = check_all_exist(&run.clients, &names).await;
        }
        if let Err(DeployError::DeletedMeanwhile { .. }) = &end
            && let Some(target) = load_balancer(&outcome.outputs)
            && let Err(error) = self.delete_record_with_control_plane(&target).await
        {
            run.progress.warn(format!("the record of the public name may be left: {error}"));
        }
        end
    }

    /// Points the public name at the API and waits for the nodes.
    async fn finish(
        &self,
        prepared: &Prepared,
        outcome: &Outcome,
        stacks: &[String],
    ) -> Result<(), DeployError> {
        let Some(target) = self.point_public_name(prepared, outcome).await? else { return Ok(()) };
        if self.options.wait != WaitFor::Nodes {
            return Ok(());
        }
        let cluster = &self.inputs.blueprint.cluster.name;
        let launches = PoolLaunches::after_changes(self.run, cluster, &outcome.changed);
        self.wait_for_cluster(&prepared.options, &target, launches, stacks).await
    }

    /// Waits until every node is Ready, after what `apply` did not wait for.
    pub(crate) async fn wait_for_nodes(&self, prepared: &Prepared) -> Result<(), DeployError> {
        let Prepared { live, options: planned, .. } = prepared;
        let Some(target) = load_balancer(&live.outputs()) else { return Ok(()) };
        let is_meant = |part: &StackPart| match (part, &planned.pool) {
            (StackPart::Pool(name), Some(pool)) => name == pool,
            _ => true,
        };
        let stacks = live.stacks.iter().filter(|(part, _)| is_meant(part));
        let stacks: Vec<String> = stacks.map(|(_, live)| live.stack.name.clone()).collect();
        let launches = PoolLaunches::of_unchanged_pools(self.run, &self.inputs.blueprint.cluster.name);
        self.wait_for_cluster(planned, &target, launches, &stacks).await
    }

    async fn wait_for_cluster(
        &self,
        planned: &PlanOptions,
        target: &Alias,
        launches: PoolLaunches<'_>,
        stacks: &[String],
    ) -> Result<(), DeployError> {
        let Self { run, inputs, .. } = *self;
        let cluster = &inputs.blueprint.cluster;
        run.progress.stage("waiting for the API and the nodes");
        let name = cluster.external_dns_name.to_string();
        let api = self.api_server(target)?;
        let groups = run.clients.groups_of_cluster(cluster.name.as_str()).await?;
        let now = LiveCluster { groups, ..LiveCluster::default() };
        let expected =
            ExpectedNodes::new(inputs.blueprint, |pool| now.pool_group(pool).map(|group| group.desired));
        let wait = ReadinessWait { run, api: &api, cluster: &cluster.name, stacks };
        match wait.until_ready(expected.only(planned.pool.as_ref()), launches).await? {
            Reached::Ready => {
                if planned.pool.is_none() && has_previous_encryption_key(inputs.credentials) {
                    encrypt_secrets_again(run, &api).await?;
                }
                run.progress.report(Event::Ready { endpoint: format!("https://{name}") });
            }
            Reached::NotReachable => {
                run.progress.warn(format!(
                    "the API at {} cannot be reached from here; the nodes have signalled CloudFormation that they are Ready",
                    target.name
                ));
                if has_previous_encryption_key(inputs.credentials) {
                    let text = "Secrets may still be encrypted with the previous key; run `infra up` where the API can be reached";
                    run.progress.warn(text);
                }
            }
        }
        Ok(())
    }

    fn api_server(&self, target: &Alias) -> Result<ApiServer, DeployError> {
        let name = self.inputs.blueprint.cluster.external_dns_name.to_string();
        let address = self.options.api_address.as_ref();
        Ok(ApiServer::of_cluster(self.inputs.credentials, &name, &target.name, address)?)
    }

    /// While the live controllers still have the key that this run drops.
    async fn encrypt_secrets_before_drop(&self, live: &LiveCluster) -> Result<(), DeployError> {
        let Some(target) = load_balancer(&live.outputs()) else { return Ok(()) };
        encrypt_secrets_again(self.run, &self.api_server(&target)?).await
    }

    /// The public name needs the control plane alone, and the user may need the name to find the cause of the failure. No more is
    /// changed after an interruption, or when another process is deleting the cluster.
    async fn point_public_name_despite(&self, failure: &DeployError, prepared: &Prepared, outcome: &Outcome) {
        let is_pointless = match failure {
            DeployError::DeletedMeanwhile { .. } => true,
            DeployError::Aws(error) => error.cause == Cause::Credentials,
            _ => false,
        };
        let has_left = self.run.waiting.end() == Some(WaitEnd::Interrupted);
        if is_pointless || has_left || !outcome.settled.contains(&StackPart::ControlPlane) {
            return;
        }
        if let Err(error) = self.point_public_name(prepared, outcome).await {
            let help = help_for(&error).map(|help| format!("; {help}")).unwrap_or_default();
            self.run.progress.warn(format!("the public name may not point at the API yet: {error}{help}"));
        }
    }

    /// Points the public name at the load balancer, if there is one yet; returns the load balancer.
    async fn point_public_name(
        &self,
        prepared: &Prepared,
        outcome: &Outcome,
    ) -> Result<Option<Alias>, DeployError> {
        let Self { run, inputs, options } = *self;
        let Some(target) = load_balancer(&outcome.outputs) else {
            let text =
                "the control plane is not complete yet; run `infra up` again to point the public name at it";
            run.progress.note(text);
            return Ok(None);
        };
        if prepared.options.pool.is_none() {
            run.progress.stage("pointing the public name at the API");
            let previous = prepared.live.outputs().get("ApiLoadBalancerName").cloned();
            let cluster = &inputs.blueprint.cluster;
            let adopt = options.adopt_record;
            // A destroy that began before the record was written may not see it.
            if point_record_at(run, cluster, &target, previous.as_deref(), adopt).await?
                && self.delete_record_with_control_plane(&target).await?
            {
                let stack = StackPart::ControlPlane.stack_name(&cluster.name);
                return Err(DeployError::DeletedMeanwhile { stack });
            }
        }
        Ok(Some(target))
    }

    /// Deletes the public record if another process deletes the control plane; returns whether it does.
    async fn delete_record_with_control_plane(&self, target: &Alias) -> Result<bool, DeployError> {
        let Self { run, inputs, .. } = *self;
        let cluster = &inputs.blueprint.cluster;
        let control_plane = run.clients.stack(&StackPart::ControlPlane.stack_name(&cluster.name)).await?;
        if control_plane.is_some_and(|stack| !stack.status.is_deletion()) {
            return Ok(false);
        }
        delete_record_of(run, cluster, target).await?;
        Ok(true)
    }
}

fn help_for(error: &DeployError) -> Option<String> {
    match error {
        DeployError::Aws(error) => hint_for(&error.to_string()).map(|hint| hint.text),
        other => other.help(),
    }
}

/// A destroy that began before this run created its first stack has taken the uploads for leftovers and deleted them.
async fn upload_deleted_again(
    run: &Run,
    store: &AssetStore,
    objects: &BTreeMap<String, BootObject<'_>>,
    part: &StackPart,
) -> Result<(), DeployError> {
    let is_of_part = |object: &BootObject<'_>| match (part, object.role) {
        (StackPart::Network | StackPart::Storage, _) => false,
        (StackPart::ControlPlane, role) => !matches!(role, Role::Pool(_)),
        (StackPart::Pool(pool), role) => *role == Role::Pool(pool.clone()),
    };
    let wanted = objects.iter().filter(|(_, object)| is_of_part(object));
    let wanted = wanted.map(|(key, object)| (key.clone(), *object));
    let uploaded = upload_boot_objects(run, store, &wanted.collect()).await?;
    if uploaded > 0 {
        run.progress.warn(format!(
            "another process deleted {} meanwhile, as `infra destroy` does; uploaded again",
            count_of(uploaded, "machine configuration")
        ));
    }
    Ok(())
}

fn is_wanted(role: &Role, planned: &PlanOptions) -> bool {
    planned.pool.as_ref().is_none_or(|pool| *role == Role::Pool(pool.clone()))
}
