#!lua flags=allow-oom
-- Delete all tasks that wait in one place, on a person's order.
-- KEYS  1 pending | recovered | suspects (list), scheduled (zset) or dead (stream)  2 totals
-- returns how many
local kind = redis.call('TYPE', KEYS[1]).ok
local size = {list = 'LLEN', zset = 'ZCARD', stream = 'XLEN'}
if not size[kind] then return 0 end
local deleted = redis.call(size[kind], KEYS[1])
redis.call('UNLINK', KEYS[1])
redis.pcall('HINCRBY', KEYS[2], 'deleted', deleted)
return deleted
