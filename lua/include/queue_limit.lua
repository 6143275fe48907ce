-- The queue-wide limit: config field `limit` is "<count> <period ms>", the state a hash {w = window, n = taken}.
-- queue_permits(config, state, now): returns how many may be claimed (nil = no limit), the window, its end in ms.
local function queue_permits(config, state, now)
  local spec = redis.call('HGET', config, 'limit')
  if not spec then return nil, -1, 0 end
  local count, period = string.match(spec, '^(%d+) (%d+)$')
  if not count then return 0, -1, now + 1000 end -- unreadable: claim nothing
  count, period = tonumber(count), tonumber(period)
  local saved = redis.call('HMGET', state, 'w', 'n')
  -- A clock that went back must not open a window that was used up already.
  local window = math.max(math.floor(now / period), tonumber(saved[1] or 0))
  local taken = tonumber(saved[1] or -1) == window and tonumber(saved[2]) or 0
  return math.max(0, count - taken), window, (window + 1) * period
end

-- take_permits(state, window, ends, now, moved): book what was claimed.
local function take_permits(state, window, ends, now, moved)
  if redis.call('HGET', state, 'w') ~= string.format('%.0f', window) then
    redis.call('HSET', state, 'w', string.format('%.0f', window), 'n', 0)
  end
  redis.call('HINCRBY', state, 'n', moved)
  redis.call('PEXPIRE', state, math.max(1, ends - now))
end
