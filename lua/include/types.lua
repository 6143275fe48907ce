-- wrong_type(key, wanted): an error reply when `key` holds another type, else nil.
-- Lua does not roll back: a task taken from one key and refused by another would be lost.
local function wrong_type(key, wanted)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= wanted then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', not a ' .. wanted)
  end
end
