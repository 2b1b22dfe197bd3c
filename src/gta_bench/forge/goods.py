"""Goods and shops for pictures. Appending changes the tasks: see FORMAT in draft.py."""

from typing import Final

GOODS: Final = (
    "Apple juice", "Bagel", "Black tea", "Blue cheese", "Bread", "Brown rice", "Butter",
    "Carrot cake", "Cheese", "Cherry jam", "Chicken soup", "Coffee", "Corn", "Dark bread",
    "Fish soup", "Garlic", "Ginger", "Grape juice", "Green tea", "Honey", "Lemon cake", "Mango",
    "Mint tea", "Mushrooms", "Noodles", "Olives", "Onion soup", "Orange juice", "Pasta", "Peanuts",
    "Pepper", "Plum jam", "Potatoes", "Pumpkin", "Raisins", "Red pepper", "Salad", "Spinach",
    "Sugar", "Tomatoes", "Walnuts", "White bread", "White rice", "Yogurt",
)  # fmt: skip
SHOPS: Final = ("Bakery", "Cafe", "Deli", "Kitchen", "Market")
