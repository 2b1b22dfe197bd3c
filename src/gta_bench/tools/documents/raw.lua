-- Raw code in a text: simple HTML is converted, everything else is shown unchanged.

local PLACEHOLDER = "\u{E000}(%d+)\u{E001}"
local FORMATS = {
  b = pandoc.Strong, strong = pandoc.Strong, i = pandoc.Emph, em = pandoc.Emph,
  u = pandoc.Underline, ins = pandoc.Underline, s = pandoc.Strikeout, del = pandoc.Strikeout,
  strike = pandoc.Strikeout, sub = pandoc.Subscript, sup = pandoc.Superscript,
}
-- Layout tags, of which only the content is used.
local WRAPPERS = {
  div = true, p = true, span = true, center = true, font = true, small = true, big = true,
  details = true, summary = true, figure = true, mark = true, kbd = true, a = true,
}
local BLOCKS = {
  table = true, thead = true, tbody = true, tfoot = true, tr = true, th = true, td = true,
  caption = true, colgroup = true, col = true, ul = true, ol = true, li = true, br = true,
  hr = true, img = true, h1 = true, h2 = true, h3 = true, h4 = true, h5 = true, h6 = true,
  blockquote = true, pre = true, code = true, figcaption = true,
}

local function spelled_out(text)
  return (text:gsub(PLACEHOLDER, "{{image_%1}}"))
end

local function attribute(tag, name)
  local value = tag:match("%s" .. name .. '%s*=%s*"([^"]*)"')
    or tag:match("%s" .. name .. "%s*=%s*'([^']*)'")
    or tag:match("%s" .. name .. "%s*=%s*([^%s>\"']+)")
  return value
end

local function image_tag(tag)
  local source = attribute(tag, "src")
  if source == nil then return nil end
  local size = { width = attribute(tag, "width"), height = attribute(tag, "height") }
  local alt = { pandoc.Str(attribute(tag, "alt") or "") }
  return pandoc.Image(alt, source, "", pandoc.Attr("", {}, size))
end

local function tag_name(raw)
  if raw.t ~= "RawInline" or raw.format ~= "html" then return nil end
  local slash, name = raw.text:match("^<(/?)(%a[%w-]*)")
  return name and name:lower(), slash == "/"
end

local function raw_inline(raw)
  local name = tag_name(raw)
  if name == "br" then return pandoc.LineBreak() end
  if name == "img" then return image_tag(raw.text) or pandoc.Str("") end
  if WRAPPERS[name] or raw.text:match("^<!%-%-") then return pandoc.Str("") end
  return pandoc.Str(spelled_out(raw.text))
end

local function closing(inlines, from, name, hopeless)
  if hopeless[name] then return nil end
  for index = from + 1, #inlines do
    local other, closes = tag_name(inlines[index])
    if other == name and closes then return index end
  end
  hopeless[name] = true
  return nil
end

-- Pairs of tags. This is slow, because it is called for every list of words.
local function with_formats(inlines)
  local result, index, hopeless = pandoc.List(), 1, {}
  while index <= #inlines do
    local element = inlines[index]
    local name, closes = tag_name(element)
    local last = FORMATS[name] and not closes and closing(inlines, index, name, hopeless)
    if last then
      local inner = pandoc.List()
      for position = index + 1, last - 1 do inner:insert(inlines[position]) end
      result:insert(FORMATS[name](with_formats(inner)))
      index = last
    else
      result:insert(element)
    end
    index = index + 1
  end
  return result
end

local function is_simple(html)
  for name in html:gmatch("<[/!?]*([^%s/>]*)") do
    name = name:lower()
    if not (FORMATS[name] or WRAPPERS[name] or BLOCKS[name]) then return false end
  end
  return true
end

local function raw_block(raw)
  local html = raw.format == "html" and raw.text:gsub("<!%-%-.-%-%->", "")
  if html and is_simple(html) then
    -- With an empty environment, the reader cannot open any file.
    return pandoc.read(html, "html", nil, {}).blocks
  end
  return pandoc.CodeBlock(spelled_out(raw.text))
end

return {
  spelled_out = spelled_out, RawInline = raw_inline, RawBlock = raw_block, Inlines = with_formats,
}
