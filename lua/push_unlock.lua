#!lua flags=allow-oom
-- Leave the publisher's lock, unless somebody asked its holder to look again.
-- KEYS  1 totals:push ("<token>" held; "<token>!" held, and there is something newer to push)
-- ARGV  1 token (who asks; without '!')  2 ms to go on holding it if it is dirty (0 = leave in any case)
-- returns 'done': it is free | 'again': it was dirty, is clean and still ours, its time starts anew
--         | 'lost': it is not ours, nothing changed
local lock, token, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
local holder = redis.call('GET', lock)
local dirty = holder == token .. '!'
if holder ~= token and not dirty then return 'lost' end
if dirty and ttl > 0 then
  redis.call('SET', lock, token, 'PX', ttl)
  return 'again'
end
redis.call('DEL', lock)
return 'done'
