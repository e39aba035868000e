"""Resources under the ids that a cluster.yaml names already: what is created next gets the first id of its kind that is free."""

from ministack.services import ec2, efs, route53

from stand_in import reservations
from stand_in.control import control


def grant(module, maker, prefix, store):
    make_id = getattr(module, maker)

    def make_wanted_id():
        wanted = (name for name in control().get("ids", []) if name.startswith(prefix) and name not in store)
        return next(wanted, None) or make_id()

    setattr(module, maker, make_wanted_id)


grant(ec2, "_new_vpc_id", "vpc-", ec2._vpcs)
grant(ec2, "_new_subnet_id", "subnet-", ec2._subnets)
grant(efs, "_fs_id", "fs-", efs._file_systems)
grant(route53, "_zone_id", "Z", route53._zones)
grant(reservations, "reservation_id", "cr-", reservations.reservations)
