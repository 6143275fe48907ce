#!lua flags=allow-oom
-- Take the lock under which totals are read and pushed, or ask its holder to look again.
-- KEYS  1 totals:push ("<token>" held; "<token>!" held, and there is something newer to push)
-- ARGV  1 token (who asks; without '!')  2 ms until the lock of a holder that died is free
-- returns 'taken': it was free | 'kept': it was ours, its time starts anew, a dirty flag stays
--         | 'busy': another's, who finds the dirty flag set when it wants to leave
local lock, token, ttl = KEYS[1], ARGV[1], ARGV[2]
local holder = redis.call('GET', lock)
if not holder then
  redis.call('SET', lock, token, 'PX', ttl)
  return 'taken'
end
if holder == token or holder == token .. '!' then
  redis.call('PEXPIRE', lock, ttl)
  return 'kept'
end
if holder:sub(-1) ~= '!' then redis.call('SET', lock, holder .. '!', 'KEEPTTL') end
return 'busy'
