-- Registrations. {deliveries} are the columns of the delivery's number and of the most deliveries, by the schema's own
-- names.
insert into wait (
    wait_expiration_uuid, original_topic, original_partition, original_offset, original_key, original_timestamp,
    original_timestamp_ms, original_timestamp_type, original_headers, wait_expiration_time, body, consumer_group,
    instance, dead_letter_topic, expiry_policy, wait_topic, wait_partition, wait_offset, {deliveries})
select
    %(id_prefix)s || lpad(to_hex(i), 12, '0'), %(input_topic)s, i %% %(input_partitions)s, i / %(input_partitions)s,
    convert_to('customer-' || i * 7919 %% %(customers)s, 'UTF8'), now(), (extract(epoch from now()) * 1000)::bigint,
    'create', '[["tenant", "YWNtZQ=="]]', now() + make_interval(secs => %(expires_in_s)s + i / 1000.0),
    convert_to(repeat(md5(i::text), 6), 'UTF8'), %(group)s, 'host-' || i %% 16, %(topic)s || '.dlq', 'dlq', %(topic)s,
    i %% %(partitions)s, %(stand)s * (i / %(partitions)s), 1, 3
from generate_series(%(first)s::bigint, %(last)s::bigint) as i
