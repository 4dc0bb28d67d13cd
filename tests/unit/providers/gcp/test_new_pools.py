"""The command for a new node pool: what it keeps of the one that it replaces, and what it leaves to gcloud and GKE."""

from __future__ import annotations

from providers.gcp.node_template.pools import create, pool_of
from providers.gcp.node_template.template import GroupTemplate

AUTH = "https://www.googleapis.com/auth/"


def test_a_new_pool_is_sold_as_the_old_one_and_gets_the_taints_of_gke_from_gke() -> None:
    """Google documents that flex-start needs the affinity none; without a duration it runs for seven days."""
    template = GroupTemplate("gpu", "c1", "us-central1", ("flex",))
    taints = [{"key": key, "value": "present", "effect": "NO_SCHEDULE"} for key in ("google.com/tpu", "nvidia.com/gpu")]
    config = {
        "machineType": "ct6e-standard-4t",
        "flexStart": True,
        "maxRunDuration": "86400s",
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        "taints": [*taints, {"key": "team", "value": "a", "effect": "NO_EXECUTE"}],
    }
    command = create(pool_of(template, "flex", {"config": config}, project="p"))
    assert "--flex-start --max-run-duration 86400s --reservation-affinity none --machine-type" in command
    assert command.endswith(
        "--max-pods-per-node 110 --node-labels cloud.google.com/gke-tpu-dra-driver=true --node-taints team=a:NoExecute"
    )
    assert "--cluster c1 --location us-central1 --project p" in command


def test_a_new_pool_keeps_disks_images_accounts_and_networks_of_the_old_one() -> None:
    template = GroupTemplate("gpu", "c1", "us-central1", ("own",))
    nodes = "nodes@p.iam.gserviceaccount.com"
    config = {
        "machineType": "a3-megagpu-8g",
        "diskType": "hyperdisk-balanced",
        "diskSizeGb": 500,
        "bootDisk": {"provisionedIops": "6000", "provisionedThroughput": "300"},
        "imageType": "COS_CONTAINERD",
        "serviceAccount": nodes,
        "oauthScopes": [f"{AUTH}cloud-platform"],
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "tags": ["gpu", "research"],
        "resourceLabels": {"goog-gke-node": "", "team": "a"},
        "minCpuPlatform": "Intel Sapphire Rapids",
        "gvnic": {"enabled": True},
        "gcfsConfig": {"enabled": False},
        "ephemeralStorageLocalSsdConfig": {"localSsdCount": 16},
    }
    network = {
        "podRange": "pods",
        "enablePrivateNodes": True,
        "additionalNodeNetworkConfigs": [{"network": "n1", "subnetwork": "s1"}, {"network": "n2", "subnetwork": "s2"}],
        "additionalPodNetworkConfigs": [
            {"subnetwork": "s1", "secondaryPodRange": "r1", "maxPodsPerNode": {"maxPodsPerNode": "8"}}
        ],
    }
    found = {"config": config, "networkConfig": network, "management": {"autoUpgrade": False}}
    command = create(pool_of(template, "own", found, project="p"))
    assert (
        "--no-enable-autorepair --disk-type hyperdisk-balanced --disk-size 500GB --boot-disk-provisioned-iops 6000 "
        "--boot-disk-provisioned-throughput 300 --ephemeral-storage-local-ssd count=16 "
        f"--service-account {nodes} --scopes {AUTH}cloud-platform --workload-metadata GKE_METADATA "
        "--pod-ipv4-range pods --additional-node-network network=n1,subnetwork=s1 "
        "--additional-node-network network=n2,subnetwork=s2 "
        "--additional-pod-network subnetwork=s1,pod-ipv4-range=r1,max-pods-per-node=8 "
        "--image-type COS_CONTAINERD --min-cpu-platform 'Intel Sapphire Rapids' --tags gpu,research --labels team=a "
        "--enable-gvnic --enable-private-nodes --no-enable-autoupgrade --machine-type a3-megagpu-8g"
    ) in command


def test_a_new_pool_names_nothing_that_gcloud_chooses_by_itself() -> None:
    template = GroupTemplate("gpu", "c1", "us-central1", ("own",))
    scopes = ("devstorage.read_only", "logging.write", "monitoring", "service.management.readonly", "servicecontrol")
    config = {
        "machineType": "g2-standard-4",
        "serviceAccount": "default",
        "oauthScopes": [f"{AUTH}{name}" for name in (*scopes, "trace.append")],
    }
    profile = {"acceleratorNetworkProfile": "auto", "additionalNodeNetworkConfigs": [{"network": "made-by-gke"}]}
    found = {"config": config, "networkConfig": profile, "management": {"autoUpgrade": True}}
    command = create(pool_of(template, "own", found, project="p"))
    assert "--no-enable-autorepair --accelerator-network-profile auto --machine-type g2-standard-4" in command
