import pytest

from nsys_triage.trace.environment import looks_secret, select, split_block


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RANK", "0"),
        ("LOCAL_RANK", "7"),
        ("SLURM_PROCID", "1023"),
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("CUDA_VISIBLE_DEVICES", "0,1,2"),
        ("CUDA_VISIBLE_DEVICES", "-1"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,GPU-8932f937"),
        ("CUDA_VISIBLE_DEVICES", "MIG-3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("CUDA_VISIBLE_DEVICES", "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/7/0"),
        ("CUDA_LAUNCH_BLOCKING", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_SUBSYS", "INIT,ENV"),
        ("NCCL_ALGO", "^NVLS,Tree"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:128"),
        ("OMP_NUM_THREADS", "4,2"),
        ("NV_COMPUTE_SANITIZER_PORT", "49152"),
    ],
)
def test_allowed(name: str, value: str) -> None:
    assert select([f"{name}={value}"]).allowed == {name: value}
    assert select([f'{name}="{value}"']).allowed == {name: value}


@pytest.mark.parametrize(
    "entry",
    [
        "HOME=/home/somebody",
        "HF_TOKEN=hf_abc",
        "rank=0",
        "MY_RANK=0",
        "RANK=somebody@host",
        "RANK=",
        "SLURM_NODEID=node17.example.org",
        "NCCL_DEBUG=INFO /var/log/somebody",
        "NCCL_DEBUG=" + "A" * 65,
        "PYTORCH_CUDA_ALLOC_CONF=backend:/tmp/x",
        "OMP_NUM_THREADS=$(nproc)",
        "RANK",
        "=0",
    ],
)
def test_not_allowed(entry: str) -> None:
    assert select([entry]).allowed == {}


@pytest.mark.parametrize("value", ["all of them", "0,/dev/nvidia1", "GPU-somebody's", "0,", "NoDevFiles", ""])
def test_of_odd_visible_devices_only_that_they_are_set(value: str) -> None:
    assert select([f"CUDA_VISIBLE_DEVICES={value}"]).allowed == {"CUDA_VISIBLE_DEVICES": ""}


def test_of_checking_tools_only_that_they_are_set() -> None:
    entries = ["COMPUTE_SANITIZER_LOG=/home/somebody/log", "CUDA_MEMCHECK=1", "CUDA_MEMCHECK_PATH=/opt/x"]
    assert select(entries).allowed == {
        "COMPUTE_SANITIZER_LOG": "",
        "CUDA_MEMCHECK": "1",
        "CUDA_MEMCHECK_PATH": "",
    }


def test_counts_and_the_first_of_several() -> None:
    found = select(["RANK=1", "RANK=2", "HOME=/h", "HF_TOKEN=x", "AWS_SECRET_ACCESS_KEY=y", "not an entry"])
    assert found.allowed == {"RANK": "1"}
    assert (found.private_count, found.secret_count) == (4, 2)


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "GITHUB_TOKEN", "githubToken", "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "OPENAI_KEY", "MYSQL_PWD", "PGPASSWORD", "DB_PASSWD",
        "SSHPASS", "SMTP_PASS", "CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS",
        "VSCODE_GIT_IPC_AUTH_TOKEN", "NPM_AUTH", "KEY1", "APIKEY", "SESSION_COOKIE", "KEYRING_PASSPHRASE",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "KEYBOARD", "XKB_KEYMAP", "KEYTIMEOUT", "TOKENIZERS_PARALLELISM", "AUTHOR", "XAUTHORITY", "PWD",
        "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "PATH", "COMPASS",
        "MONKEY", "PATTERN", "SECRETARY",
    ],
)  # fmt: skip
def test_names_of_other_things(name: str) -> None:
    assert not looks_secret(name)


def test_blocks_of_both_exporters() -> None:
    assert split_block("A=1;B=2") == ["A=1", "B=2"]
    assert split_block("A=1;x\0B=2\0") == ["A=1;x", "B=2", ""]
