"""A volume and an instance, as EC2 describes them to a node."""

from collections import deque

from signature import REGION


class Volume:
    """`scenes` are what the next descriptions of it show, as (state, instance, state of the attachment); the last one stays."""

    def __init__(self, *scenes):
        self.scenes = deque(scenes or [("available", None, None)])

    def look(self):
        return self.scenes.popleft() if len(self.scenes) > 1 else self.scenes[0]

    def attach(self, instance):
        self.scenes = deque([("in-use", instance, "attached")])


class Instance:
    def __init__(self, identity, address, role="pool-cpu", cluster="paddle", state="running", launched="2030-01-01T00:00:00.000Z",
                 name=None, public=None):
        self.identity, self.address, self.role, self.cluster, self.state = identity, address, role, cluster, state
        self.launched, self.public = launched, public
        self.name = name or f"ip-{address.replace('.', '-')}.{REGION}.compute.internal"


def describe_instance(instance):
    public = f"<dnsName>ec2-{instance.public.replace('.', '-')}.compute.amazonaws.com</dnsName>" if instance.public else "<dnsName/>"
    address = f"<ipAddress>{instance.public}</ipAddress>" if instance.public else ""
    return f"""
        <item>
            <reservationId>r-{instance.identity[2:]}</reservationId>
            <ownerId>111122223333</ownerId>
            <groupSet/>
            <instancesSet>
                <item>
                    <instanceId>{instance.identity}</instanceId>
                    <instanceState>
                        <code>16</code>
                        <name>{instance.state}</name>
                    </instanceState>
                    <privateDnsName>{instance.name}</privateDnsName>
                    {public}
                    <reason/>
                    <launchTime>{instance.launched}</launchTime>
                    <placement>
                        <availabilityZone>us-west-2b</availabilityZone>
                    </placement>
                    <privateIpAddress>{instance.address}</privateIpAddress>
                    {address}
                    <tagSet>
                        <item>
                            <key>Name</key>
                            <value>paddle &amp; co</value>
                        </item>
                        <item>
                            <key>infra:role</key>
                            <value>{instance.role}</value>
                        </item>
                        <item>
                            <key>infra:cluster</key>
                            <value>{instance.cluster}</value>
                        </item>
                    </tagSet>
                    <networkInterfaceSet>
                        <item>
                            <privateIpAddress>{instance.address}</privateIpAddress>
                            <privateDnsName>{instance.name}</privateDnsName>
                            <tagSet>
                                <item>
                                    <key>infra:role</key>
                                    <value>network-interface</value>
                                </item>
                            </tagSet>
                        </item>
                    </networkInterfaceSet>
                </item>
            </instancesSet>
        </item>"""
