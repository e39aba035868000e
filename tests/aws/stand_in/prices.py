"""AWS's price list and EC2's history of spot prices, in the shapes of their answers: products with attributes and terms, JSON inside of
JSON, in pages. Prices are those that AWS published for us-west-2 in 2026; other regions have the same, those of China in CNY."""

import decimal
import json

from ministack import app
from ministack.core import router
from ministack.core.responses import get_region
from ministack.services import ec2

from stand_in.control import control
from stand_in.lookups import answer, matches, zones

# Short, so that every client has to turn pages.
PAGE = 3

# By the hour, on demand, with Linux.
MACHINES = {
    "t3.small": "0.0208", "t3.medium": "0.0416", "t3.large": "0.0832", "m5.large": "0.096", "m5.xlarge": "0.192", "m5.2xlarge": "0.384",
    "c5.large": "0.085", "c5.xlarge": "0.17", "g4dn.xlarge": "0.526", "g4dn.2xlarge": "0.752", "g5.xlarge": "1.006",
    "g5.2xlarge": "1.212", "g5.4xlarge": "1.624", "g5.12xlarge": "5.672", "p3.2xlarge": "3.06", "p3.8xlarge": "12.24",
    "p4d.24xlarge": "21.957642", "p5.48xlarge": "55.04",
}
# Sold in capacity blocks too, or in nothing else: such an hour is listed with what the operating system costs.
IN_BLOCKS = ("p4d.24xlarge", "p5.48xlarge", "p5e.48xlarge")

# Prefixes of usage types.
PREFIXES = {"us-west-2": "USW2-", "us-east-1": "", "eu-west-1": "EU-", "cn-north-1": "CNN1-", "cn-northwest-1": "CNW1-"}


def listed(service, family, usage, unit, *prices, **attributes):
    """`prices` are pairs of the use from which a price applies, and the price."""
    return {"service": service, "family": family, "usage": usage, "unit": unit, "prices": prices, "attributes": attributes}


# What a query for one product finds beside it is part of the answer.
UNITS = [
    listed("AmazonEC2", "NAT Gateway", "NatGateway-Hours", "Hrs", ("0", "0.0450000000"), group="NGW:NatGateway"),
    listed("AmazonEC2", "NAT Gateway", "NatGateway-Bytes", "GB", ("0", "0.0450000000"), group="NGW:NatGateway"),
    listed("AmazonEC2", "NAT Gateway", "RegionalNatGateway-Hours", "Hrs", ("0", "0.0460000000"), group="NGW:NatGateway"),
    listed("AmazonEC2", "NAT Gateway", "NatGateway-Prvd-Bytes", "GB", ("0", "0.0000000000"), group="NGW:NatGateway"),
    listed("AWSELB", "Load Balancer-Network", "LoadBalancerUsage", "Hrs", ("0", "0.0225000000"), operation="LoadBalancing:Network"),
    listed("AWSELB", "Load Balancer-Network", "LCUUsage", "LCU-Hrs", ("0", "0.0060000000"), operation="LoadBalancing:Network"),
    listed("AWSELB", "Load Balancer-Network", "TS-LoadBalancerUsage", "Hrs", ("0", "0.0050000000"), operation="LoadBalancing:Network"),
    listed("AWSELB", "Load Balancer-Application", "LoadBalancerUsage", "Hrs", ("0", "0.0230000000"), operation="LoadBalancing:Application"),
    listed("AmazonVPC", "", "PublicIPv4:InUseAddress", "Hrs", ("0", "0.0050000000"), group="VPCPublicIPv4Address"),
    listed("AmazonVPC", "", "PublicIPv4:IdleAddress", "Hrs", ("0", "0.0060000000"), group="VPCPublicIPv4Address"),
    listed("AmazonEC2", "Storage", "EBS:VolumeUsage.gp3", "GB-Mo", ("0", "0.0800000000"), volumeApiName="gp3"),
    listed("AmazonEC2", "Storage", "EBS:VolumeUsage.gp2", "GB-Mo", ("0", "0.1000000000"), volumeApiName="gp2"),
    listed("AmazonEFS", "Storage", "TimedStorage-ByteHrs", "GB-Mo", ("0", "0.3000000000"), storageClass="General Purpose"),
    listed("AmazonEFS", "Storage", "TimedStorage-Z-ByteHrs", "GB-Mo", ("0", "0.1600000000"), storageClass="One Zone-General Purpose"),
    listed("AmazonEFS", "Storage", "IATimedStorage-ByteHrs", "GB-Mo", ("0", "0.0250000000"), storageClass="Infrequent Access"),
    listed("AmazonEFS", "Storage", "IATimedStorage-ET-ByteHrs", "GB-Mo", ("0", "0.0160000000"), storageClass="Infrequent Access-ET"),
    listed("AmazonEFS", "Storage", "ETDataAccess-Bytes", "GB", ("0", "0.0300000000"), accessType="Read"),
    listed("AmazonEFS", "Storage", "ETDataAccess-Bytes", "GB", ("0", "0.0600000000"), accessType="Write"),
    listed("AmazonS3", "Storage", "TimedStorage-ByteHrs", "GB-Mo", ("0", "0.0230000000"), ("51200", "0.0220000000"),
           ("512000", "0.0210000000"), volumeType="Standard", storageClass="General Purpose"),
    listed("awskms", "Encryption Key", "KMS-Keys", "Keys", ("0", "1.0000000000")),
]
HOSTED_ZONES = listed("AmazonRoute53", "DNS Zone", "HostedZone", "HostedZone", ("0", "0.5000000000"), ("25", "0.1000000000"))


def product(entry, region, usage):
    """As AWS writes a product; its price by reservation is there too, and is no price on demand."""
    sku = f"SKU{abs(hash((entry['service'], usage, str(entry['attributes'])))) % 10**13:013}"
    currency = "CNY" if region.startswith("cn-") else "USD"
    dimensions = {f"{sku}.JRTCKXETXF.{number}": {
        "unit": entry["unit"], "beginRange": begin, "endRange": "Inf", "appliesTo": [], "rateCode": f"{sku}.JRTCKXETXF.{number}",
        "description": f"{price} per {entry['unit']}", "pricePerUnit": {currency: price}}
        for number, (begin, price) in enumerate(entry["prices"])}
    attributes = entry["attributes"] | {"usagetype": usage, "servicecode": entry["service"]}
    if entry is not HOSTED_ZONES:
        attributes |= {"regionCode": region, "locationType": "AWS Region"}
    reserved = {f"{sku}.38NPMPTW36": {"offerTermCode": "38NPMPTW36", "sku": sku, "priceDimensions": {
        f"{sku}.38NPMPTW36.0": {"unit": "Hrs", "pricePerUnit": {currency: "0.0000000001"}}}, "termAttributes": {}}}
    return {"product": {"sku": sku, "productFamily": entry["family"], "attributes": attributes}, "serviceCode": entry["service"],
            "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": {
                "offerTermCode": "JRTCKXETXF", "sku": sku, "effectiveDate": "2026-10-01T00:00:00Z", "termAttributes": {},
                "priceDimensions": dimensions}}, "Reserved": reserved},
            "version": "20261001000000", "publicationDate": "2026-10-01T00:00:00Z"}


def machine(name, price, region, system="Linux", tenancy="Shared", software="NA", status="Used", market="OnDemand"):
    operation = "RunInstances" if market == "OnDemand" else "RunInstances:0g00:CB"
    entry = listed("AmazonEC2", "Compute Instance", "", "Hrs", ("0", f"{decimal.Decimal(price):.10f}"), instanceType=name,
                   operatingSystem=system, tenancy=tenancy, preInstalledSw=software, capacitystatus=status, operation=operation,
                   marketoption=market)
    return product(entry, region, f"{PREFIXES.get(region, 'XXX1-')}BoxUsage:{name}")


def products(region):
    unpriced = control().get("unpriced", [])
    for name, price in MACHINES.items():
        if name not in unpriced:
            yield machine(name, price, region)
            # Each costs something else, and none of them is meant.
            yield machine(name, "9.1", region, system="Windows")
            yield machine(name, "9.2", region, tenancy="Dedicated")
            yield machine(name, "9.3", region, software="SQL Web")
            yield machine(name, "0", region, status="UnusedCapacityReservation")
    for name in IN_BLOCKS:
        yield machine(name, "0", region, market="CapacityBlock")
    for entry in UNITS:
        if entry["usage"] not in unpriced:
            prefix = f"{region}-" if entry["service"] == "awskms" else PREFIXES.get(region, "XXX1-")
            yield product(entry, region, f"{prefix}{entry['usage']}")
    yield product(HOSTED_ZONES, region, HOSTED_ZONES["usage"])


def is_meant(item, asked):
    facts = item["product"]["attributes"] | {"productFamily": item["product"]["productFamily"]}
    return item["serviceCode"] == asked["ServiceCode"] and all(
        facts.get(entry["Field"]) == entry["Value"] for entry in asked.get("Filters", []))


async def answer_prices(_method, _path, headers, body, _query):
    action = headers.get("x-amz-target", "").rpartition(".")[2]
    asked = json.loads(body or b"{}")
    kinds = {entry["Type"] for entry in asked.get("Filters", [])}
    here = get_region()
    if action != "GetProducts" or here not in ("us-east-1", "eu-central-1", "ap-south-1", "cn-northwest-1") or kinds - {"TERM_MATCH"}:
        return reply(400, {"__type": "InvalidParameterException", "Message": f"{action} of {here}: {sorted(kinds)}"})
    region = next((entry["Value"] for entry in asked.get("Filters", []) if entry["Field"] == "regionCode"), here)
    found = [item for item in products(region) if is_meant(item, asked)] if region.startswith("cn-") == here.startswith("cn-") else []
    begin = int(asked.get("NextToken") or 0)
    page = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(item) for item in found[begin:begin + PAGE]]}
    return reply(200, page | ({"NextToken": str(begin + PAGE)} if found[begin + PAGE:] else {}))


def reply(status, content):
    return status, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(content).encode()


router.SERVICE_PATTERNS["pricing"] = {"target_prefixes": ["AWSPriceListService"], "host_patterns": [r"api\.pricing\."],
                                      "credential_scope": "pricing"}
app.SERVICE_HANDLERS["pricing"] = answer_prices


def describe_spot_prices(parameters):
    filters = ec2._parse_filters(parameters)
    names = ec2._parse_member_list(parameters, "InstanceType")
    history = [{"instanceType": name, "productDescription": "Linux/UNIX", "availabilityZone": zone,
                # The further the zone, the dearer.
                "spotPrice": f"{decimal.Decimal(MACHINES[name]) * (40 + place) / 100:.6f}", "timestamp": ec2._now_ts()}
               for name in names if name in MACHINES for place, zone in enumerate(zones()) if matches(filters, availability_zone=[zone])]
    begin = int(ec2._p(parameters, "NextToken") or 0)
    members = {"spotPriceHistorySet": history[begin:begin + PAGE]}
    # The last page has an empty token, as EC2's has.
    return answer("DescribeSpotPriceHistory", members | {"nextToken": str(begin + PAGE) if history[begin + PAGE:] else ""})


ec2._ACTION_MAP["DescribeSpotPriceHistory"] = describe_spot_prices
