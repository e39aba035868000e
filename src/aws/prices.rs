//! Prices: AWS's price list, and EC2's history of spot prices.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::InstanceType;
use aws_sdk_pricing::types::{Filter, FilterType};
use serde::Deserialize;
use time::OffsetDateTime;

use super::actions;
use super::machines::ec2_filter;
use super::{AwsError, Clients};

/// What spot prices are for, in EC2's words; a machine in a VPC has the same price.
const LINUX: &str = "Linux/UNIX";
/// The most products that AWS lists in one page.
const LONGEST_PAGE: i32 = 100;

/// A product of the price list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedProduct {
    /// The attributes of the product, by name.
    pub attributes: BTreeMap<String, String>,
    /// The prices on demand: several if it gets cheaper with use.
    pub prices: Vec<ListedPrice>,
}

/// A price of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedPrice {
    /// The use from which the price applies.
    pub from: String,
    /// The price of a unit by currency, as decimal text.
    pub per_unit: BTreeMap<String, String>,
}

/// The price of a spot machine in an availability zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpotPrice {
    /// The instance type.
    pub instance_type: String,
    /// The availability zone.
    pub zone: String,
    /// The price of an hour, as decimal text.
    pub price: String,
}

/// A product as the service writes it: JSON inside of JSON.
#[derive(Deserialize)]
struct PriceListItem {
    product: Product,
    #[serde(default)]
    terms: Terms,
}

#[derive(Deserialize)]
struct Product {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Terms {
    #[serde(default, rename = "OnDemand")]
    on_demand: BTreeMap<String, Term>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    #[serde(default)]
    begin_range: String,
    price_per_unit: BTreeMap<String, String>,
}

impl From<PriceListItem> for ListedProduct {
    fn from(item: PriceListItem) -> Self {
        let dimensions =
            item.terms.on_demand.into_values().flat_map(|term| term.price_dimensions.into_values());
        let prices = dimensions
            .map(|dimension| ListedPrice { from: dimension.begin_range, per_unit: dimension.price_per_unit });
        Self { attributes: item.product.attributes, prices: prices.collect() }
    }
}

impl Clients {
    /// The products of a service whose attributes are these. Only a few regions answer: see [`Clients::in_region`].
    pub(crate) async fn products(
        &self,
        service: &str,
        attributes: &[(&str, &str)],
    ) -> Result<Vec<ListedProduct>, AwsError> {
        let mut call = self.pricing.get_products().service_code(service).max_results(LONGEST_PAGE);
        for (field, value) in attributes {
            let filter = Filter::builder().r#type(FilterType::TermMatch).field(*field).value(*value).build();
            call =
                call.filters(filter.map_err(|error| {
                    AwsError::incomplete(actions::PRICING_GET_PRODUCTS, error.to_string())
                })?);
        }
        let items = call.into_paginator().items().send().try_collect().await;
        let items = items.map_err(AwsError::of(actions::PRICING_GET_PRODUCTS))?;
        let read = |text: &String| serde_json::from_str::<PriceListItem>(text).map(ListedProduct::from);
        items.iter().map(read).collect::<Result<_, _>>().map_err(|error| {
            AwsError::incomplete(
                actions::PRICING_GET_PRODUCTS,
                format!("a product is not as AWS documents it: {error}"),
            )
        })
    }

    /// What spot machines of these types cost now in each of these availability zones; a type that one does not offer is not in the answer.
    pub(crate) async fn spot_prices(
        &self,
        types: &[String],
        zones: &[String],
        now: OffsetDateTime,
    ) -> Result<Vec<SpotPrice>, AwsError> {
        let types = types.iter().map(|name| InstanceType::from(name.as_str())).collect();
        // With the present as its beginning, the history has the price of now alone.
        let call = self
            .ec2
            .describe_spot_price_history()
            .set_instance_types(Some(types))
            .product_descriptions(LINUX)
            .filters(ec2_filter("availability-zone", zones))
            .start_time(aws_smithy_types::DateTime::from_secs(now.unix_timestamp()));
        let mut history = call
            .into_paginator()
            .items()
            .send()
            .try_collect()
            .await
            .map_err(AwsError::of(actions::EC2_DESCRIBE_SPOT_PRICE_HISTORY))?;
        history.sort_by_key(|entry| entry.timestamp);
        let price = |entry: aws_sdk_ec2::types::SpotPrice| {
            Some(SpotPrice {
                instance_type: entry.instance_type?.as_str().to_owned(),
                zone: entry.availability_zone?,
                price: entry.spot_price?,
            })
        };
        Ok(history.into_iter().filter_map(price).collect())
    }
}
