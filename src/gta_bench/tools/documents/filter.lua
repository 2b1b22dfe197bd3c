-- The step between pandoc's reader and writer: pictures, raw code, links, attributes.
--
-- `plan.json` in the folder of this file lists the pictures. Nothing else is opened. Pictures that
-- the text names but that do not exist are written to `missing.json` in the current folder.

local PLACEHOLDER = "\u{E000}(%d+)\u{E001}"
local SAFE_LINK = { http = true, https = true, mailto = true }

local folder = pandoc.path.directory(PANDOC_SCRIPT_FILE)

local function read(name)
  local file = assert(io.open(pandoc.path.join({ folder, name }), "rb"))
  local data = file:read("a")
  file:close()
  return data
end

local raw = dofile(pandoc.path.join({ folder, "raw.lua" }))
local spelled_out = raw.spelled_out
local plan = pandoc.json.decode(read("plan.json"), false)
local used, placed, missing, identifiers = {}, {}, {}, {}
local widest = plan.width

-- Pictures

local function inches(text, whole)
  local number, unit = (text or ""):match("^%s*(%d+%.?%d*)%s*(%a*%%?)%s*$")
  number = tonumber(number)
  if number == nil or number <= 0 then return nil end
  local units = { [""] = 1 / 96, px = 1 / 96, ["in"] = 1, cm = 1 / 2.54, mm = 1 / 25.4, pt = 1 / 72 }
  if unit == "%" then return whole * number / 100 end
  return units[unit] and number * units[unit]
end

local function picture(index, alt, wanted)
  local image = plan.images[index]
  used[index], placed[image.file] = true, true
  local scale = 1
  local width = inches(wanted.width, widest)
  local height = inches(wanted.height, plan.height)
  if width then scale = width / image.width elseif height then scale = height / image.height end
  scale = math.min(scale, widest / image.width, plan.height / image.height)
  local size = {
    width = string.format("%.3fin", image.width * scale),
    height = string.format("%.3fin", image.height * scale),
  }
  if alt == nil or #alt == 0 then alt = { pandoc.Str(image.alt) } end
  return pandoc.Image(alt, image.file, "", pandoc.Attr("", {}, size))
end

local function named(image)
  local target = image.src
  if placed[target] then return nil end
  local index = plan.targets[target]
  if index then return picture(index, image.caption, image.attributes) end
  missing[#missing + 1] = target
  return pandoc.Str("")
end

local function numbered(number)
  if number >= 1 and number <= plan.numbered then return picture(number, nil, {}) end
  missing[#missing + 1] = "{{image_" .. number .. "}}"
  return pandoc.Str("")
end

local function with_pictures(str)
  local text, from, parts = str.text, 1, {}
  while true do
    local first, last, number = text:find(PLACEHOLDER, from)
    if first == nil then break end
    if first > from then parts[#parts + 1] = pandoc.Str(text:sub(from, first - 1)) end
    parts[#parts + 1] = numbered(tonumber(number))
    from = last + 1
  end
  if from == 1 then return nil end
  if from <= #text then parts[#parts + 1] = pandoc.Str(text:sub(from)) end
  return parts
end

-- Attributes: a writer may take them for code, and two elements of one name cannot be linked to

local function bare(element)
  local id = element.identifier or ""
  if id:match('[%c%s<>"\\]') or identifiers[id] then id = "" end
  identifiers[id] = true
  element.attr = pandoc.Attr(id)
  return element
end

local function code(element)
  local language = element.classes and element.classes[1] or ""
  element.text = spelled_out(element.text)
  element.attr = pandoc.Attr("", language:match("^[%w+#_-]+$") and { language } or {})
  return element
end

local function link(element)
  local target = element.target
  local scheme = target:match("^(%a[%w+.-]*):")
  local inside = target:match("^#(.+)$")
  local safe = scheme and SAFE_LINK[scheme:lower()] or inside and identifiers[inside]
  if not safe then return element.content end
  element.attr = pandoc.Attr()
  element.title = ""
  return element
end

-- A rule for words is called for each word, so it is only added if there is something to find.
local picture_rules = { Str = plan.marks and with_pictures or nil, Image = named }
local raw_rules = { RawBlock = raw.RawBlock, RawInline = raw.RawInline }

local function table_rules(element)
  local before = widest
  widest = math.max(0.5, before / math.max(1, #element.colspecs) - 0.15)
  element = element:walk(picture_rules)
  widest = before
  element.attr = pandoc.Attr()
  return element
end

local function plain_math(element)
  -- Formulas are code, so a placeholder in a formula stays text.
  element.text = spelled_out(element.text)
  return element
end

local function append_unused(blocks)
  for _, index in ipairs(plan.append) do
    if not used[index] then blocks:insert(pandoc.Para({ picture(index, nil, {}) })) end
  end
  return blocks
end

local function report()
  local file = assert(io.open("missing.json", "wb"))
  file:write(pandoc.json.encode(#missing > 0 and missing or pandoc.List()))
  file:close()
end

function Pandoc(document)
  if plan.embed then
    for _, image in ipairs(plan.images) do
      pandoc.mediabag.insert(image.file, image.mime, read(image.file))
    end
  end
  local blocks = document.blocks
  if plan.formats then blocks = blocks:walk({ Inlines = raw.Inlines }) end
  blocks = blocks:walk(raw_rules)
  blocks = blocks:walk({
    Header = bare, Div = bare, Span = bare, Figure = bare, Code = code, CodeBlock = code,
    Math = plain_math,
  })
  blocks = blocks:walk({ Link = link })
  blocks = blocks:walk({ Table = table_rules }):walk(picture_rules)
  blocks = append_unused(blocks)
  report()
  return pandoc.Pandoc(blocks)
end
