//! What is asked of AWS's price list and of EC2's history of spot prices: every filter of every query.

use std::path::Path;

use serde_json::Value;
use time::macros::datetime;

use super::look_up_prices;
use crate::aws::test_script::Script;
use crate::blueprint::Blueprint;

/// A cluster that uses everything that has a price.
const CLUSTER: &str = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                       kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd', network: {topology: private}, storage: {efs: {}}, \
                       etcd: {instanceType: t3.medium}, controllers: {instanceType: t3.medium}, \
                       pools: [{name: gpu, instanceType: g5.xlarge, spot: true}]}";

/// A query of the price list in one line, its filters in their order.
fn describe(query: &Value) -> String {
    let filters = query["Filters"].as_array().into_iter().flatten().map(|filter| {
        assert_eq!(filter["Type"], "TERM_MATCH");
        let text = |key: &str| filter[key].as_str().unwrap_or_default();
        format!("{}={}", text("Field"), text("Value"))
    });
    let service = query["ServiceCode"].as_str().unwrap_or_default().to_owned();
    std::iter::once(service).chain(filters).collect::<Vec<_>>().join("; ")
}

#[tokio::test(start_paused = true)]
async fn every_filter_of_a_query_is_there() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::new(|asked| {
        let nothing = if asked.form.starts_with('{') {
            r#"{"FormatVersion": "aws_v1", "PriceList": []}"#
        } else {
            "<DescribeSpotPriceHistoryResponse><spotPriceHistorySet/></DescribeSpotPriceHistoryResponse>"
        };
        (200, nothing.to_owned())
    });
    let cluster = crate::config::validate(Path::new("cluster.yaml"), CLUSTER)?.value;
    let now = datetime!(2026-11-14 12:00 UTC);
    look_up_prices(&script.clients().await, &Blueprint::new(cluster)?, None, now).await?;

    let asked = script.asked();
    let (list, spot): (Vec<_>, Vec<_>) = asked.iter().partition(|call| call.form.starts_with('{'));
    let queries: Vec<Value> =
        list.iter().map(|call| serde_json::from_str(&call.form)).collect::<Result<_, _>>()?;
    let machine = |name: &str| {
        format!(
            "AmazonEC2; instanceType={name}; regionCode=us-west-2; operatingSystem=Linux; tenancy=Shared; preInstalledSw=NA; \
             capacitystatus=Used"
        )
    };
    let mut expected = vec![machine("g5.xlarge"), machine("t3.medium")];
    expected.extend(
        [
            "AmazonEC2; productFamily=NAT Gateway; regionCode=us-west-2",
            "AWSELB; productFamily=Load Balancer-Network; regionCode=us-west-2",
            "AmazonVPC; group=VPCPublicIPv4Address; regionCode=us-west-2",
            "AmazonEC2; productFamily=Storage; volumeApiName=gp3; regionCode=us-west-2",
            // Route 53 has no regions.
            "AmazonRoute53; productFamily=DNS Zone",
            "AmazonEFS; regionCode=us-west-2",
            "AmazonS3; productFamily=Storage; volumeType=Standard; regionCode=us-west-2",
            "awskms; productFamily=Encryption Key; regionCode=us-west-2",
        ]
        .map(str::to_owned),
    );
    assert_eq!(queries.iter().map(describe).collect::<Vec<_>>(), expected);

    let [spot] = spot.as_slice() else { return Err(format!("{spot:?}").into()) };
    for part in [
        "Action=DescribeSpotPriceHistory",
        "InstanceType.1=g5.xlarge",
        "ProductDescription.1=Linux%2FUNIX",
        "Filter.1.Name=availability-zone",
        "Filter.1.Value.1=us-west-2a",
        // From now on: the price of this moment alone.
        "StartTime=2026-11-14T12%3A00%3A00Z",
    ] {
        assert!(spot.form.split('&').any(|found| found == part), "{part} is not in {}", spot.form);
    }
    Ok(())
}
