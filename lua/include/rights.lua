-- no_right(command, …): an error reply when the user may not run `command` with these arguments, else nil.
-- For what comes after the first write: a task taken by one command and refused by the next would be lost.
local function no_right(...)
  if not redis.acl_check_cmd(...) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. string.lower((...)) .. "' command")
  end
end
